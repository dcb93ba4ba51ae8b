/*
 * From the reply to a batch to the calls in it: what each entry hears, or why all of them fail.
 *
 * Invariant: the whole reply is checked before any of it is used. Each function but batch_take frees the batch, and
 * calls ops for each of its calls. The worker's thread.
 */
#ifndef WEIR_QUOTA_BATCH_REPLY_H
#define WEIR_QUOTA_BATCH_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/batch.h"
#include "quota/script_conn.h"

struct quota_hold;

struct batch_ops {
    /* The numbers that the script returned for an entry. Each of its calls must be taken with batch_take. */
    void (*on_numbers)(void *arg, const struct batch *batch, struct batch_entry *entry, const int64_t *numbers,
                       const struct quota_hold *holds);
    /* Its keys have been deleted; n of them existed. */
    void (*on_deleted)(struct decision *decision, int64_t n);
    /* `error` is a whole reply. is_down: Redis is away or does not answer; whether it was asked is not known. */
    void (*on_failed)(struct decision *decision, struct slice error, bool is_down);
};

/* The owner of the calls. */
struct batch_owner {
    const struct batch_ops *ops;
    void *arg;
};

/* Remove and return the first call of an entry. */
struct decision *batch_take(struct batch_entry *entry);

/* All its calls hear this error; is_down as in batch_ops. */
void batch_fail(const struct batch_owner *owner, struct batch *batch, struct slice error, bool is_down);

/* Redis' whole reply, not an error, that came over `conn`. */
void batch_answer(const struct batch_owner *owner, struct batch *batch, struct script_conn *conn, struct slice reply);

/* Free the batch and its calls: their clients have gone. */
void batch_drop(struct batch *batch);

#endif
