/*
 * Lines of policies that an operator has set for one subject (LIMIT SET ... FOR), or for a time (EX): they stand over
 * what the configuration in memory says, whatever becomes of that. With the orders about them. The main thread.
 */
#ifndef WEIR_RUN_SET_LINES_H
#define WEIR_RUN_SET_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "limit/figures/journal.h"
#include "limit/policy/identity.h"
#include "limit/policy/variant.h"
#include "run/config/config_edit.h"

#define SET_LINES_MAX 1000

struct set_line {
    char *policy; /* as it is called in the file */
    char *what;
    char *expression;
    char *subject;     /* NULL: for all subjects of the policy */
    uint64_t until_ns; /* monotonic; 0: until it is taken back, or the next reload */
};

struct set_lines {
    struct set_line *at;
    size_t n;
};

struct set_lines set_lines_copy(const struct set_lines *lines);
void set_lines_fini(struct set_lines *lines);

/* NULL: there is none; case does not matter, but in the subject's name. `subject` NULL: for all. */
const struct set_line *set_lines_find(const struct set_lines *lines, struct slice policy, struct slice what,
                                      const char *subject);

/* Add a copy, in the place of the one that is called so. */
void set_lines_put(struct set_lines *lines, const struct set_line *line);
bool set_lines_drop(struct set_lines *lines, struct slice policy, struct slice what, const char *subject);

/* Take out, and log, those whose time is over; with set_lines_keep_timed those that have no end, since a reload comes. */
void set_lines_end(struct set_lines *lines, uint64_t now_ns, struct journal *journal);
void set_lines_keep_timed(struct set_lines *lines, struct journal *journal);

/* When the first of them ends; 0: none does. */
uint64_t set_lines_next_end(const struct set_lines *lines);

/*
 * Put them into the policies, which nobody else has yet; those of single subjects into *variants. Returns NULL, or
 * what is wrong with the first that does not fit (heap); with a journal, those that do not are taken out and logged.
 */
char *set_lines_apply(struct set_lines *lines, struct policies *policies, const struct command_table *table,
                      struct journal *journal, struct variants *variants);

/* Add all of them to the differences from the file. */
void set_lines_differences(const struct set_lines *lines, const struct config_file *file, uint64_t now_ns,
                           struct differences *differences);

/* True if the order is about such a line. */
bool order_is_special(const struct order *order);

/*
 * Carry out the order on `lines`. `name` is the line's (order_line). Returns NULL, or an error ("ERR ...", heap), and
 * nothing has changed.
 */
__attribute__((warn_unused_result)) char *order_lines_set(const struct order *order, const struct line_name *name,
                                                          const struct identity *identity, struct set_lines *lines,
                                                          uint64_t now_ns);
__attribute__((warn_unused_result)) char *order_lines_unset(const struct order *order, const struct line_name *name,
                                                            struct set_lines *lines);

/* What the log is to say, heap. `before`: what stood there, `now`: what holds for all of the policy; NULL: nothing. */
char *order_lines_told(const struct order *order, const struct line_name *name, const char *before, const char *now);

#endif
