/*
 * Orders about whom an operator blocks (limit/blocks.h), and what becomes of blocks in time. The main thread.
 */
#ifndef WEIR_RUN_ORDER_BLOCK_H
#define WEIR_RUN_ORDER_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "front/order.h"
#include "limit/blocks.h"
#include "limit/identity.h"
#include "limit/journal.h"
#include "run/config_diff.h"

/*
 * Carry out the order on a copy of `blocks`: *next, which the caller then owns. Returns NULL, or an error ("ERR ...",
 * heap), and no *next.
 */
__attribute__((warn_unused_result)) char *order_block(const struct order *order, const struct identity *identity,
                                                      const struct blocks *blocks, uint64_t now_ns,
                                                      struct blocks **next);
__attribute__((warn_unused_result)) char *order_unblock(const struct order *order, const struct blocks *blocks,
                                                        struct blocks **next);

/* Log what has been done by an order; in order_blocks_ended those whose time is over. */
void order_block_log(const struct order *order, struct journal *journal);
void order_blocks_ended(const struct blocks *blocks, uint64_t now_ns, struct journal *journal);

/* Add all of them to the differences: they are in no file. */
void order_block_differences(const struct blocks *blocks, uint64_t now_ns, struct differences *differences);

#endif
