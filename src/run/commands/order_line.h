/*
 * What orders have in common: which line of the configuration one is about, when it ends, and what its client and the
 * log are told.
 */
#ifndef WEIR_RUN_ORDER_LINE_H
#define WEIR_RUN_ORDER_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "limit/figures/journal.h"
#include "limit/policy/policy.h"
#include "quota/named.h"
#include "run/config/config_edit.h"

/* An error for the client, heap; printf's format, which begins with "ERR". */
__attribute__((format(printf, 1, 2))) char *order_error(const char *format, ...);

/* Log that the order was carried out, and who gave it; printf's format. `kind` is one word, for the journal. */
__attribute__((format(printf, 4, 5))) void log_order(struct journal *journal, const struct order *order,
                                                     const char *kind, const char *format, ...);

/* That there is no such policy, and which one may be meant. */
char *order_no_policy(const struct policies *policies, struct slice name);

/* Can the text stand in a line of a file, and in a status reply? NULL can. */
bool order_is_one_line(const char *text);

/*
 * Set *name, valid as long as the order and `policies`. Returns NULL, or an error (heap): no such policy, or a line
 * that cannot be changed while weir runs.
 */
__attribute__((warn_unused_result)) char *order_line(const struct order *order, const struct policies *policies,
                                                     struct line_name *name);

/* When what is ordered ends, by the order's EX; *until_ns 0: when it is taken back. Returns NULL, or an error (heap). */
__attribute__((warn_unused_result)) char *order_end(const struct order *order, uint64_t now_ns, uint64_t *until_ns);

#define ORDER_END_ROOM 96

/* `before` (", ends in ") and how long it holds, or still does where the process before was given it; "": it has no end. */
const char *order_print_end(const struct order *order, const char *before, char out[ORDER_END_ROOM]);

/* Is there a named limit as the order says? Returns NULL, or an error (heap). */
__attribute__((warn_unused_result)) char *order_named(const struct order *order, const struct named *named);

/* As order_line, for an order about a named limit; *value is the right side of the line. */
__attribute__((warn_unused_result)) char *order_named_line(const struct order *order, const struct named *named,
                                                           struct line_name *name, struct slice *value);

#endif
