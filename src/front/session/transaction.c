#include "front/session/transaction.h"

static void change(struct transaction *transaction, enum transaction_state state)
{
    transaction->state = (uint8_t)(state & 7);
}

/* What was queued before says nothing any more. */
static void forget_queued(struct transaction *transaction)
{
    transaction->admits = transaction->forges = transaction->is_raw = false;
}

bool transaction_must_settle(const struct transaction *transaction, enum effect effect)
{
    switch ((enum transaction_state)transaction->state) {
    case TRANSACTION_BEGUN:
    case TRANSACTION_ENDED:
        return effect != EFFECT_EXEC; /* if MULTI is refused, then so is EXEC; and a second one in any case */
    case TRANSACTION_DISCARDED:
        return true;
    default:
        return false;
    }
}

enum effect transaction_send(struct transaction *transaction, enum effect effect)
{
    bool is_open = transaction_is_open(transaction);
    bool is_unsure = transaction->state == TRANSACTION_BEGUN;
    switch (effect) {
    case EFFECT_MULTI:
        if (is_open)
            return EFFECT_NONE; /* they do not nest, and the one that is open goes on */
        change(transaction, TRANSACTION_BEGUN);
        forget_queued(transaction);
        break;
    case EFFECT_EXEC:
        if (!is_open)
            return EFFECT_NONE;
        change(transaction, is_unsure ? TRANSACTION_ENDED : TRANSACTION_NONE);
        break;
    case EFFECT_DISCARD:
        if (!is_open)
            return EFFECT_NONE;
        change(transaction, TRANSACTION_DISCARDED);
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
            change(transaction, is_ok ? TRANSACTION_OPEN : TRANSACTION_NONE);
        break;
    case TRANSACTION_ENDED:
        if (effect == EFFECT_MULTI)
            change(transaction, TRANSACTION_NONE);
        break;
    case TRANSACTION_DISCARDED:
        if (effect == EFFECT_DISCARD)
            change(transaction, is_ok ? TRANSACTION_NONE : TRANSACTION_OPEN);
        break;
    default:
        break;
    }
}

void transaction_break(struct transaction *transaction)
{
    transaction_drop(transaction);
    change(transaction, TRANSACTION_BROKEN);
}

void transaction_end_broken(struct transaction *transaction)
{
    if (transaction_is_broken(transaction))
        change(transaction, TRANSACTION_NONE);
}

void transaction_drop(struct transaction *transaction)
{
    change(transaction, TRANSACTION_NONE);
    forget_queued(transaction);
}

void transaction_note_admission(struct transaction *transaction)
{
    transaction->admits = true;
}

void transaction_note_forging(struct transaction *transaction)
{
    transaction->forges = true;
}

void transaction_note_raw(struct transaction *transaction)
{
    transaction->is_raw = true;
}

void transaction_reset(struct transaction *transaction)
{
    *transaction = (struct transaction){.state = TRANSACTION_NONE};
}
