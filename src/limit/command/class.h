/*
 * Classes: named sets of commands. Built in are all, read, write, control, @category and cmd.name.
 * Operators define further classes from commands, categories and classes; '-' removes from the
 * class.
 *
 * A class is stored as its terms and evaluated for each command. One definition therefore serves
 * every command table. A line of [cost] gives the commands of a class a number of units.
 */
#ifndef WEIR_LIMIT_CLASS_H
#define WEIR_LIMIT_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"

struct classes; /* the operator's classes of one configuration */
struct class;

struct classes *classes_new(void);
void classes_free(struct classes *classes);

/*
 * Defines the class `name`, or adds terms to it, from a comma-separated list ("keys, sort,
 * @dangerous, -info"). A class must be defined before its use. False: `why` holds the reason,
 * without a position.
 */
__attribute__((warn_unused_result)) bool class_define(struct classes *classes, struct slice name,
                                                      struct slice terms, char *why,
                                                      size_t why_size);

/*
 * Returns the class written as `text` (all, read, @slow, cmd.config|get, heavy), owned by
 * `classes`. NULL: unknown, and `why` names the nearest known class. Case does not matter.
 */
const struct class *class_find(struct classes *classes, struct slice text, char *why,
                               size_t why_size);

/*
 * All classes, in no particular order: built-in, the operator's, and classes spelled out in the
 * configuration (@slow, cmd.get).
 */
size_t classes_count(const struct classes *classes);
const struct class *classes_at(const struct classes *classes, size_t i);

/* True for all, read, write and control. */
bool class_is_builtin(const struct class *class);

/* The name for display, in lower case. Valid as long as the class. */
struct slice class_name(const struct class *class);

/* True if the command is in the class. `all` holds every command, class `control` included. */
bool class_has(const struct class *class, const struct command_table *table,
               const struct command *command);

/*
 * True if every command of the class is also in `control`, which is never refused (control itself,
 * cmd.ping ...).
 */
bool class_is_control(const struct class *class, const struct command_table *table);

/*
 * Calls `warn` for each command or category that a class names and `table` does not know. Passes
 * the class and the nearest known name ("" if none is near).
 */
void classes_check(const struct classes *classes, const struct command_table *table,
                   void (*warn)(void *arg, struct slice class, struct slice unknown,
                                struct slice near),
                   void *arg);

/*
 * ---- members ----
 *
 * The members of a class are the commands of a table that are in the class. The members of each
 * class are computed once, for callers that need the members for many policies.
 *
 * One thread. No class may be added while the members exist.
 */

struct members;

/* Both arguments must outlive the members. */
struct members *members_new(const struct classes *classes, const struct command_table *table);
void members_free(struct members *members);

/* By command id: true if the command is in the class. Valid as long as the members. */
const bool *members_of(struct members *members, const struct class *class);

const struct classes *members_classes(const struct members *members);
const struct command_table *members_table(const struct members *members);

/* ---- the lines of [cost]: how many units a command costs in limits on cost ---- */

struct cost;

/* Built by one thread, bound to a command table, then immutable. */
struct costs {
    struct cost *at; /* in the order of the file */
    size_t n;
    uint16_t *of; /* by command id: 1 + the index of the cost; 0: none; made by costs_bind */
    size_t n_of;
};

/*
 * Adds a line: cost = "100", "1 per key" or "1 per cost". `what` is a command, a category or a
 * class. If several lines fit a command, the last one applies. False: `why` holds the reason.
 */
__attribute__((warn_unused_result)) bool costs_add(struct costs *costs, struct classes *classes,
                                                   const struct command_table *table,
                                                   struct slice what, struct slice cost, char *why,
                                                   size_t why_size);

/* Finds the cost of each command of `table`. */
void costs_bind(struct costs *costs, const struct command_table *table);

/*
 * The cost of one request in units: at least 1, at most INT64_MAX, which is more than any burst.
 * `request` and argc are as in keys.h. The keys of a truncated request are counted by keys_most.
 */
uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request,
                     uint32_t argc);

/* Frees the memory of costs_bind; with is_owner also the lines. */
void costs_fini(struct costs *costs, bool is_owner);

#endif
