/*
 * Classes: named sets of commands. The built-in ones are all, read, write, control, @category and cmd.name; operators
 * define others from commands, categories and classes, '-' takes away.
 *
 * A class is kept as the list of its terms and evaluated for each command, so one definition serves every command
 * table.
 */
#ifndef WEIR_LIMIT_CLASS_H
#define WEIR_LIMIT_CLASS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "limit/command/command.h"

struct classes; /* the operator's classes of one configuration */
struct class;

struct classes *classes_new(void);
void classes_free(struct classes *classes);

/*
 * Define, or add terms to, the class `name` from a comma-separated list ("keys, sort, @dangerous, -info").
 * A class must be defined before it is used. False: `why` says what is wrong, without a position.
 */
__attribute__((warn_unused_result)) bool class_define(struct classes *classes, struct slice name, struct slice terms,
                                                      char *why, size_t why_size);

/*
 * The class written as `text` (all, read, @slow, cmd.config|get, heavy), owned by `classes`; NULL and `why` (with the
 * nearest known name) when there is none. Case does not matter.
 */
const struct class *class_find(struct classes *classes, struct slice text, char *why, size_t why_size);

/* All classes, in no order: built in, the operator's, and those that were spelled out (@slow, cmd.get). */
size_t classes_count(const struct classes *classes);
const struct class *classes_at(const struct classes *classes, size_t i);

/* all, read, write or control? */
bool class_is_builtin(const struct class *class);

/* As it is shown: lower case. Valid as long as the class. */
struct slice class_name(const struct class *class);

/* Is the command in the class? `all` holds every command, class `control` included. */
bool class_has(const struct class *class, const struct command_table *table, const struct command *command);

/* Is every command of the class also in `control`, which is never refused? (class control itself, cmd.ping ...) */
bool class_is_control(const struct class *class, const struct command_table *table);

/*
 * For each command or category that a class names and `table` does not know: call `warn` with the class and the
 * nearest known name ("" if none is near).
 */
void classes_check(const struct classes *classes, const struct command_table *table,
                   void (*warn)(void *arg, struct slice class, struct slice unknown, struct slice near), void *arg);

/*
 * ---- members ----
 *
 * Which commands of a table are in which class, looked up once for each class: for what asks that of many policies.
 *
 * One thread; classes may not be added meanwhile.
 */

struct members;

/* Both outlive it. */
struct members *members_new(const struct classes *classes, const struct command_table *table);
void members_free(struct members *members);

/* Is it in this class? By command id; as long as the members. */
const bool *members_of(struct members *members, const struct class *class);

const struct classes *members_classes(const struct members *members);
const struct command_table *members_table(const struct members *members);

#endif
