/*
 * The limits that the operator has named, for LIMIT CHECK: [limit NAME] in the configuration. Built by one thread, then
 * only read; counted.
 */
#ifndef WEIR_QUOTA_NAMED_H
#define WEIR_QUOTA_NAMED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "quota/rule.h"

#define NAMED_NAME_MAX 64
#define NAMED_MAX 10000

struct named;

struct named *named_new(void);
struct named *named_get(struct named *named);
void named_put(struct named *named);

/* A line of [limit NAME]: `algorithm` = `text`. Lines of one name with the same algorithm add up. */
__attribute__((warn_unused_result)) bool named_add(struct named *named, struct slice name, struct slice algorithm,
                                                   struct slice text, char *why, size_t why_size);

/* In any case of letters; NULL: there is none of that name. */
const struct quota_rule *named_find(const struct named *named, struct slice name);

/* The nearest name; empty: none is near. */
struct slice named_near(const struct named *named, struct slice name);

#endif
