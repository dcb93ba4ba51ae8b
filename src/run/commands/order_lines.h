/*
 * Orders about lines of policies for one subject, or for a time (run/commands/set_lines.h): LIMIT SET and UNSET with
 * FOR or EX. The main thread.
 */
#ifndef WEIR_RUN_ORDER_LINES_H
#define WEIR_RUN_ORDER_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "limit/policy/identity.h"
#include "run/config/config_edit.h"
#include "run/commands/set_lines.h"

/* Is it about such a line? */
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
