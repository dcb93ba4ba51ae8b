/*
 * Where a client is between MULTI and EXEC, and what must be known of its queued commands when EXEC
 * is sent.
 *
 * A step is taken when its command is sent, for what follows may be sent before the answer comes;
 * MULTI and DISCARD may still be refused then, so until they are answered it is not sure. Touches
 * nothing but its own structs.
 *
 * On a cluster the queued requests are kept as they were sent, so that the whole transaction can be
 * sent once more to another node: when the slot of its keys moves, or its first key is elsewhere. A
 * transaction has the keys of one slot. The first key decides which; a watched key decides before
 * that. Bounds: QUEUE_MAX bytes are kept. A transaction of more runs as any other, but cannot be
 * sent to another node. Memory is the pool's.
 */
#ifndef WEIR_FRONT_TRANSACTION_H
#define WEIR_FRONT_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/chain.h"
#include "base/slice.h"
#include "limit/command/command.h"
#include "limit/command/keys.h"

enum transaction_state {
    TRANSACTION_NONE,
    TRANSACTION_BROKEN,    /* MULTI could not travel: nothing until EXEC may */
    TRANSACTION_BEGUN,     /* MULTI has been sent */
    TRANSACTION_OPEN,      /* and answered */
    TRANSACTION_ENDED,     /* EXEC has been sent, and MULTI not yet answered */
    TRANSACTION_DISCARDED, /* DISCARD has been sent, and may be refused */
};

/* Zeroed: none. */
struct transaction {
    uint8_t state : 3; /* enum transaction_state */
    /* Since the last MULTI, of what has been queued: */
    bool admits : 1; /* it may change whom Redis takes those for who do not log in */
    bool forges : 1; /* it may forge replies */
    bool is_raw : 1; /* it answers in frames that cannot be counted */
};

static inline bool transaction_is_none(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_NONE;
}

static inline bool transaction_is_broken(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_BROKEN;
}

/* Is what is sent now queued, as far as is known? */
static inline bool transaction_is_open(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_BEGUN || transaction->state == TRANSACTION_OPEN;
}

/* Inside MULTI all but these is queued, and answered by one reply whatever it is. */
static inline bool transaction_queues(const struct transaction *transaction, enum effect effect)
{
    return transaction_is_open(transaction) && effect != EFFECT_EXEC && effect != EFFECT_DISCARD &&
           effect != EFFECT_MULTI && effect != EFFECT_WATCH;
}

/* Must an answer that is on its way say first where it is, before what is more than a plain request goes? */
bool transaction_must_settle(const struct transaction *transaction, enum effect effect);

/* A request is sent. Its effect, or EFFECT_NONE where Redis refuses it: a MULTI inside another, an EXEC without one. */
enum effect transaction_send(struct transaction *transaction, enum effect effect);

/* MULTI, EXEC or DISCARD has been answered. */
void transaction_answered(struct transaction *transaction, enum effect effect, bool is_ok);

/* MULTI could not travel; and EXEC, DISCARD or RESET has ended that. */
void transaction_break(struct transaction *transaction);
void transaction_end_broken(struct transaction *transaction);

/* There is none any more, whatever there was: its connection's replies cannot be told apart. */
void transaction_drop(struct transaction *transaction);

/* ---- what is queued on a cluster ---- */

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
