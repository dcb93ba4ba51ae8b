/*
 * What one worker asks Redis and is answered: questions of one turn of the loop travel together, as few calls of
 * scripts.
 *
 * Questions about one key are answered in the order in which they were asked. A script that Redis has forgotten is sent
 * once more, with nothing behind it that would overtake.
 */
#ifndef WEIR_QUOTA_EXCHANGE_H
#define WEIR_QUOTA_EXCHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "quota/batch.h"
#include "quota/script_conn.h"
#include "quota/settings.h"

struct exchange;
struct quota_hold;

struct exchange_ops {
    /* The calls of an entry are decided by these numbers: each is to be taken. */
    void (*on_numbers)(struct exchange *exchange, const struct batch *batch, struct batch_entry *entry,
                       const int64_t *numbers, const struct quota_hold *holds);
    /* So many of its keys existed. */
    void (*on_deleted)(struct decision *call, int64_t n);
    /* error: a whole reply. is_down: nothing was asked, or nobody knows, because Redis is away. */
    void (*on_failed)(struct decision *call, struct slice error, bool is_down);
};

struct exchange {
    struct script_conn conn;
    struct list open; /* batches that are still being filled */
    struct list sent; /* and those that wait for their answer, oldest first */
    uint32_t sent_us; /* how long Redis is busy with them */
    const struct quota_settings *settings;
    const struct exchange_ops *ops;
};

struct exchange_question {
    const struct quota_algorithm *algorithm; /* without a script: the keys are deleted */
    struct slice words;                      /* for the script, the same for all calls of a batch */
    unsigned n_words;
    unsigned work_us; /* of Redis */
};

/* lanes, login, settings and ops are the caller's and outlive it. */
void exchange_init(struct exchange *exchange, struct lanes *lanes, struct login *login,
                   const struct quota_settings *settings, const struct exchange_ops *ops);

/* Calls that are still in it belong to nobody, and are freed. */
void exchange_fini(struct exchange *exchange);

uint64_t exchange_hash(const struct exchange *exchange, struct slice key);

/* Ask about the call's keys, which have this hash, at the end of the turn. False: no memory. */
bool exchange_ask(struct exchange *exchange, struct decision *call, const struct exchange_question *question,
                  uint64_t hash);

/* Is anything asked about the key that has not been answered? */
bool exchange_concerns(const struct exchange *exchange, struct slice key, uint64_t hash);

/* The first call of an entry that is being answered: it is being asked about no longer. */
struct decision *exchange_take(struct batch_entry *entry);

#endif
