/*
 * Which commands of a table are in which class, looked up once for each class: for what asks that of many policies.
 *
 * One thread; classes may not be added meanwhile.
 */
#ifndef WEIR_LIMIT_MEMBERS_H
#define WEIR_LIMIT_MEMBERS_H

#include <stdbool.h>

#include "limit/command/class.h"
#include "limit/command/command.h"

struct members;

/* Both outlive it. */
struct members *members_new(const struct classes *classes, const struct command_table *table);
void members_free(struct members *members);

/* Is it in this class? By command id; as long as the members. */
const bool *members_of(struct members *members, const struct class *class);

const struct classes *members_classes(const struct members *members);
const struct command_table *members_table(const struct members *members);

#endif
