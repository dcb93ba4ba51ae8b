#include "front/session/transaction.h"

static void transaction_change(struct transaction *transaction, enum transaction_state state)
{
    transaction->state = (uint8_t)(state & 7);
}

/* Clears the properties of the queued commands. */
static void forget_queued(struct transaction *transaction)
{
    transaction->admits = transaction->forges = transaction->is_passthrough = false;
}

bool transaction_must_settle(const struct transaction *transaction, enum effect effect)
{
    switch ((enum transaction_state)transaction->state) {
    case TRANSACTION_BEGUN:
    case TRANSACTION_ENDED:
        /* EXEC need not wait: EXEC fails if MULTI is refused, and a second EXEC always fails */
        return effect != EFFECT_EXEC;
    case TRANSACTION_DISCARDED:
        return true;
    default:
        return false;
    }
}

enum effect transaction_send(struct transaction *transaction, enum effect effect)
{
    bool is_open = transaction_is_open(transaction);
    bool was_begun = transaction->state == TRANSACTION_BEGUN;
    switch (effect) {
    case EFFECT_MULTI:
        if (is_open)
            return EFFECT_NONE; /* MULTI does not nest, and the open transaction continues */
        transaction_change(transaction, TRANSACTION_BEGUN);
        forget_queued(transaction);
        break;
    case EFFECT_EXEC:
        if (!is_open)
            return EFFECT_NONE;
        transaction_change(transaction, was_begun ? TRANSACTION_ENDED : TRANSACTION_NONE);
        break;
    case EFFECT_DISCARD:
        if (!is_open)
            return EFFECT_NONE;
        transaction_change(transaction, TRANSACTION_DISCARDED);
        break;
    default:
        break;
    }
    return effect;
}

void transaction_answered(struct transaction *transaction, enum effect effect, bool is_ok)
{
    switch ((enum transaction_state)transaction->state) {
    case TRANSACTION_BEGUN:
        if (effect == EFFECT_MULTI)
            transaction_change(transaction, is_ok ? TRANSACTION_OPEN : TRANSACTION_NONE);
        break;
    case TRANSACTION_ENDED:
        if (effect == EFFECT_MULTI)
            transaction_change(transaction, TRANSACTION_NONE);
        break;
    case TRANSACTION_DISCARDED:
        if (effect == EFFECT_DISCARD)
            transaction_change(transaction, is_ok ? TRANSACTION_NONE : TRANSACTION_OPEN);
        break;
    default:
        break;
    }
}

void transaction_break(struct transaction *transaction)
{
    transaction_drop(transaction);
    transaction_change(transaction, TRANSACTION_BROKEN);
}

void transaction_end_broken(struct transaction *transaction)
{
    if (transaction_is_broken(transaction))
        transaction_change(transaction, TRANSACTION_NONE);
}

void transaction_drop(struct transaction *transaction)
{
    transaction_change(transaction, TRANSACTION_NONE);
    forget_queued(transaction);
}

/* ---- requests queued on a cluster, as they were sent ---- */

void queue_begin(struct command_queue *queue)
{
    *queue = (struct command_queue){.slot = KEYS_NO_SLOT};
}

static void free_requests(struct command_queue *queue, struct pool *pool)
{
    pool_note_less(pool, queue->requests.room);
    bytes_fini(&queue->requests);
    queue->requests = (struct bytes){0};
}

/* If memory is out, the transaction is handled as one with too many bytes. */
void queue_add(struct command_queue *queue, struct pool *pool, struct slice request, int32_t slot)
{
    size_t before = queue->requests.room;
    if (queue->slot == KEYS_NO_SLOT)
        queue->slot = slot;
    queue->n++;
    queue->is_cut |= request.len == 0;
    if (!queue->is_cut)
        queue->is_cut = !bytes_add(&queue->requests, request, QUEUE_MAX);
    pool_note_more(pool, queue->requests.room - before);
    if (queue->is_cut)
        free_requests(queue, pool);
}

void queue_drop(struct command_queue *queue, struct pool *pool)
{
    free_requests(queue, pool);
    queue->n = 0;
    queue->is_cut = false;
}
