/*
 * Orders about whom an operator blocks (limit/blocks.h), and what becomes of blocks in time. The main thread.
 */
#ifndef WEIR_RUN_ORDER_BLOCK_H
#define WEIR_RUN_ORDER_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "limit/blocks.h"
#include "limit/policy/identity.h"
#include "run/commands/live_rules.h"
#include "run/config/config_edit.h"

/* Carry out the order, and log it. Returns NULL, or an error ("ERR ...", heap). */
__attribute__((warn_unused_result)) char *order_block(const struct order *order, struct live_rules *live,
                                                      uint64_t now_ns);

/* What `blocks` become by an ORDER_BLOCK: *next, which the caller then owns; or an error, and no *next. */
__attribute__((warn_unused_result)) char *order_block_next(const struct order *order, const struct identity *identity,
                                                           const struct shared_set *blocks, uint64_t now_ns,
                                                           struct shared_set **next);

/* Take back, and log, those whose time is over. */
void order_blocks_end(struct live_rules *live, uint64_t now_ns);

/* Add all of them to the differences: they are in no file. */
void order_block_differences(const struct shared_set *blocks, uint64_t now_ns, struct differences *differences);

#endif
