/*
 * Calls that travel to Redis as one: an EVALSHA with many keys, each with the calls that ask the same of it.
 */
#ifndef WEIR_QUOTA_BATCH_H
#define WEIR_QUOTA_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "quota/decision.h"
#include "quota/script_conn.h"

/* Entries of one EVALSHA: Lua can unpack their keys. */
#define BATCH_KEYS_MAX 250

#define BATCH_SEEN 8 /* words */

/* How long Redis may be busy with one: then it is others' turn. One call alone takes less. */
#define BATCH_WORK_US 1000

/* One key, or those of calls on the same several ones. */
struct batch_entry {
    struct list calls; /* equal ones, in the order they came */
    uint32_t n;
    uint32_t changes; /* of the key, that were known when it was sent */
    uint64_t hash;
    uint64_t bits; /* of several keys: one for the hash of each, which may be another's too */
};

struct batch {
    struct list in_exchange;
    const struct quota_algorithm *algorithm; /* with no script it is an UNLINK of one call's keys */
    uint64_t sent_ns;
    uint32_t work_us; /* of each key */
    bool is_repaired; /* sent again with its script, after NOSCRIPT */
    uint32_t n;
    struct batch_entry *entries; /* room for the most there can be, grown as needed */
    uint32_t room;
    uint16_t *index; /* of entries by hash, the last of equal ones: 1 + index, or 0; a power of two of slots */
    uint32_t n_slots;
    uint64_t seen[BATCH_SEEN]; /* of several keys: a bit for the hash of each, which may be another's too */
    size_t words_len;
    unsigned n_words;
    char words[]; /* what the calls have in common, as bulks */
};

/* NULL: out of memory. */
struct batch *batch_new(const struct quota_algorithm *algorithm, struct slice words, unsigned n_words,
                        unsigned work_us);
void batch_free(struct batch *batch); /* without its calls */

/* Does it ask this of its keys, and is there room for one more? */
bool batch_fits(const struct batch *batch, const struct quota_algorithm *algorithm, struct slice words);

/* Does it ask anything about this key, as far as can be told? Then nothing else about it may go before it. */
bool batch_concerns(const struct batch *batch, struct slice key, uint64_t hash);

/* A call on several keys asks about the one with this hash. Returns its bit in batch_entry.bits. */
uint64_t batch_note_key(struct batch *batch, uint64_t hash);

/*
 * One more call, whose key's hash is `hash`; of several keys that of call->key, and `bits` are those of each. It stands
 * behind all that ask about one of its keys. False: out of memory.
 */
__attribute__((warn_unused_result)) bool batch_add(struct batch *batch, struct decision *call, uint64_t hash,
                                                   uint64_t bits);

static inline enum script batch_script(const struct batch *batch)
{
    return batch->algorithm->script;
}

/* How long Redis will be busy with it. */
static inline uint32_t batch_work_us(const struct batch *batch)
{
    return batch->n * batch->work_us;
}

/* Send it; with the script itself when it is sent again. False: out of memory, nothing has been sent. */
__attribute__((warn_unused_result)) bool batch_send(struct batch *batch, struct script_conn *conn);

#endif
