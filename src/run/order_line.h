/*
 * The line of the configuration that an order is about, and errors as its client reads them.
 */
#ifndef WEIR_RUN_ORDER_LINE_H
#define WEIR_RUN_ORDER_LINE_H

#include <stdbool.h>

#include "front/order.h"
#include "limit/policy.h"
#include "quota/named.h"
#include "run/config_edit.h"

/* "ERR ...", printf's format; heap. */
__attribute__((format(printf, 1, 2))) char *order_error(const char *format, ...);

/* Is the text fit for a line of a file, and for one of a reply? NULL is. */
bool order_is_one_line(const char *text);

/*
 * The name of the line, good as long as the order and `policies`. NULL, or an error (heap): there is no such policy, or
 * the line is none that can be changed while weir runs.
 */
__attribute__((warn_unused_result)) char *order_line(const struct order *order, const struct policies *policies,
                                                     struct line_name *name);

/* Is there a limit that is named as the order says? */
__attribute__((warn_unused_result)) char *order_named(const struct order *order, const struct named *named);

/* The same of an order about a named limit; and the right side of its line. */
__attribute__((warn_unused_result)) char *order_named_line(const struct order *order, const struct named *named,
                                                           struct line_name *name, struct slice *value);

#endif
