/*
 * The state of a client between MULTI and EXEC, and the properties of its queued commands that EXEC
 * needs.
 *
 * The state changes when a command is sent, because the next request may be sent before the answer
 * comes. Redis may still refuse MULTI or DISCARD, so the state is uncertain until Redis answers.
 * The module uses no other struct of the client.
 *
 * On a cluster the queued requests are kept as they were sent. weir can therefore send the whole
 * transaction to another node, when the slot moves or the first key is elsewhere. A transaction has
 * keys of one slot. A watched key decides the slot, else the first key. At most QUEUE_MAX bytes are
 * kept. A larger transaction runs as any other, but cannot be sent to another node. The kept bytes
 * count in the pool.
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
    TRANSACTION_BROKEN,    /* MULTI could not be sent: nothing is sent until EXEC */
    TRANSACTION_BEGUN,     /* MULTI was sent */
    TRANSACTION_OPEN,      /* MULTI was answered */
    TRANSACTION_ENDED,     /* EXEC was sent, and MULTI is not answered yet */
    TRANSACTION_DISCARDED, /* DISCARD was sent, and may be refused */
};

/* A zeroed struct means that there is no transaction. */
struct transaction {
    uint8_t state : 3; /* enum transaction_state */
    /* the next three fields describe the commands queued since the last MULTI */
    /* a command may change the user or rights of connections that do not log in */
    bool admits : 1;
    /* a command has may_forge (command_row.h): after EXEC the lane is untrusted */
    bool forges : 1;
    bool is_passthrough : 1; /* the answer to EXEC has frames that weir cannot count */
};

static inline bool transaction_is_none(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_NONE;
}

static inline bool transaction_is_broken(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_BROKEN;
}

/* True if requests sent now are queued, as far as known. */
static inline bool transaction_is_open(const struct transaction *transaction)
{
    return transaction->state == TRANSACTION_BEGUN || transaction->state == TRANSACTION_OPEN;
}

/*
 * True if Redis queues the request, and answers it with one reply. Inside MULTI Redis queues
 * requests of all effects but EXEC, DISCARD, MULTI and WATCH.
 */
static inline bool transaction_queues(const struct transaction *transaction, enum effect effect)
{
    return transaction_is_open(transaction) && effect != EFFECT_EXEC && effect != EFFECT_DISCARD &&
           effect != EFFECT_MULTI && effect != EFFECT_WATCH;
}

/*
 * True if a stateful command must wait until the answer to MULTI or DISCARD has made the state
 * certain.
 */
bool transaction_must_settle(const struct transaction *transaction, enum effect effect);

/*
 * Records that a request is sent. Returns the effect of the request. EFFECT_NONE: Redis refuses the
 * request (a nested MULTI, an EXEC without MULTI).
 */
enum effect transaction_send(struct transaction *transaction, enum effect effect);

/* Called when MULTI, EXEC or DISCARD was answered. */
void transaction_answered(struct transaction *transaction, enum effect effect, bool is_ok);

/*
 * transaction_break: called when MULTI could not be sent. transaction_end_broken: called when EXEC,
 * DISCARD or RESET ends the broken state.
 */
void transaction_break(struct transaction *transaction);
void transaction_end_broken(struct transaction *transaction);

/* Forgets the transaction, because the replies of its connection can no longer be counted. */
void transaction_drop(struct transaction *transaction);

/* ---- requests queued on a cluster ---- */

#define QUEUE_MAX (1U << 20) /* bytes of one client; far more than programs queue (chosen) */

struct command_queue {
    struct bytes requests; /* the kept requests, concatenated; heap */
    uint32_t n;            /* queued requests, kept or not */
    int32_t slot;          /* slot of the queued and watched keys; KEYS_NO_SLOT: not decided */
    bool is_cut;           /* the requests exceed QUEUE_MAX, and no request is kept */
};

/* Initialises the queue, without requests and without a slot. */
void queue_begin(struct command_queue *queue);

/* True if a request with keys of this slot, or KEYS_NO_SLOT, may be queued. */
static inline bool queue_fits(const struct command_queue *queue, int32_t slot)
{
    return slot == KEYS_NO_SLOT || queue->slot == KEYS_NO_SLOT || queue->slot == slot;
}

/*
 * Adds a request for which queue_fits is true. The request decides the slot if no earlier key did.
 * An empty request stands for a request that is too large to be buffered.
 */
void queue_add(struct command_queue *queue, struct pool *pool, struct slice request, int32_t slot);

/* Forgets the queued requests and frees their memory. The slot stays. */
void queue_drop(struct command_queue *queue, struct pool *pool);

#endif
