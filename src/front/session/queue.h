/*
 * What a client of a cluster has queued between MULTI and EXEC, as it was sent, so that the whole transaction can be
 * sent once more to another node: when the slot of its keys moves, or its first key is elsewhere.
 *
 * A transaction has the keys of one slot. The first key decides which; a watched key decides before that.
 * Bounds: QUEUE_MAX bytes are kept. A transaction of more runs as any other, but cannot be sent to another node.
 * Owner: the client; its worker's thread. Knows of no client. Memory is the pool's.
 */
#ifndef WEIR_FRONT_QUEUE_H
#define WEIR_FRONT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/chain.h"
#include "base/slice.h"
#include "limit/command/keys.h"

#define QUEUE_MAX (1U << 20) /* bytes of one client: far more than programs queue (chosen) */

struct command_queue {
    struct bytes requests; /* one behind another; heap */
    uint32_t n;            /* how many requests are queued, kept or not */
    int32_t slot;          /* of their keys, and of watched keys; KEYS_NO_SLOT: there is none yet */
    bool is_cut;           /* they are more than may be kept, and none is */
};

/* Nothing is queued, and the slot is not decided. */
void queue_begin(struct command_queue *queue);

/* True if a request with keys of this slot, or KEYS_NO_SLOT, may be queued. */
static inline bool queue_fits(const struct command_queue *queue, int32_t slot)
{
    return slot == KEYS_NO_SLOT || queue->slot == KEYS_NO_SLOT || queue->slot == slot;
}

/* A request that fits; it decides the slot if none has. An empty one is too large to be here in full. */
void queue_add(struct command_queue *queue, struct pool *pool, struct slice request, int32_t slot);

/* What is queued is forgotten, and its memory given back. The slot stays. */
void queue_drop(struct command_queue *queue, struct pool *pool);

#endif
