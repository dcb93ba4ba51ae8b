/*
 * Orders that give a single key of a named limit rates of its own, or take them back; and what becomes of such rates when the
 * configuration changes.
 *
 * The main thread.
 */
#ifndef WEIR_RUN_ORDER_KEY_H
#define WEIR_RUN_ORDER_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "front/order.h"
#include "limit/journal.h"
#include "quota/named.h"
#include "run/config_diff.h"

/* Carry it out on a copy of `named`, which is *next. NULL, or an error ("ERR ...", heap), and there is none. */
__attribute__((warn_unused_result)) char *order_key_set(const struct order *order, const struct named *named,
                                                        uint64_t now_ns, struct journal *journal, struct named **next);
__attribute__((warn_unused_result)) char *order_key_unset(const struct order *order, const struct named *named,
                                                          uint64_t now_ns, struct journal *journal,
                                                          struct named **next);

/*
 * Rates of single keys go over from `before` to `fresh`, which is not in use yet, where the limit is still there and has the
 * same algorithm; after a reload only those that have an end. What goes is named in the log.
 */
void order_key_inherit(struct named *fresh, const struct named *before, bool is_reload, uint64_t now_ns,
                       struct journal *journal);

/* They stand in no file. */
void order_key_differences(const struct named *named, uint64_t now_ns, struct differences *differences);

#endif
