/*
 * A batch: LIMIT calls that travel to Redis as one EVALSHA with many keys, from the first call to
 * the answers of all.
 *
 * A batch has an entry for each key, with the calls on it. The whole reply is checked before any of
 * it is used. The worker's thread.
 */
#ifndef WEIR_QUOTA_BATCH_H
#define WEIR_QUOTA_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "quota/decision.h"
#include "upstream/node/node.h"
#include "upstream/script.h"

#define BATCH_SEEN 8 /* words of batch.seen */

/* How long a batch may keep Redis busy, so that others get their turn. One call alone takes less. */
#define BATCH_WORK_US 1000

/* One key, or one set of several keys, and the equal calls on it. */
struct batch_entry {
    struct list calls; /* struct decision by in_entry, in the order in which they came */
    uint32_t n;
    uint32_t changes; /* quota_changes of the key when the batch was sent */
    uint64_t hash;    /* of the key */
    uint64_t bits;    /* several keys: a bit for the hash of each; different keys may share a bit */
};

static inline struct decision *batch_first_call(const struct batch_entry *entry)
{
    return container_of(entry->calls.next, struct decision, in_entry);
}

/* What all calls of a batch ask alike. */
struct batch_question {
    const struct quota_algorithm *algorithm; /* without a script: UNLINK of one call's keys */
    struct slice words;                      /* ARGV for the script, as n_words bulks */
    unsigned n_words;
    unsigned work_us; /* how long each entry keeps Redis busy */
};

struct script_node;

struct batch {
    struct list in_exchange;
    struct list in_slot;      /* among those to be sent in near slots; itself while it is not one of those */
    struct script_node *node; /* the exchange's: where it is to be sent, or was */
    uint16_t slot;            /* of all its keys; 0 unless the upstream is a cluster */
    uint8_t n_hops;           /* how often a cluster has sent it to another node */
    bool is_asking;           /* its node takes the slot from another one, which has said ASK */
    uint64_t order;           /* of the exchange's batches, as they were begun */
    uint64_t until_ns;        /* Redis has not run it, and it is asked again until then; 0: it has not been refused */
    uint64_t again_ns;        /* while it is held: when it is asked again */
    uint64_t pause_ns;        /* before that; grows */
    char *refusal;            /* the last error by which it was refused; heap; NULL: none */
    struct batch_question question;
    uint64_t asked_ns; /* of its calls, the least */
    uint64_t sent_ns;
    bool is_away;                /* when it was refused last there was no connection */
    bool is_whole;               /* it carries its script (EVAL): sent again after NOSCRIPT, or Redis takes no hashes */
    uint32_t n;                  /* entries */
    struct batch_entry *entries; /* heap, with room for `room` */
    uint32_t room;
    uint16_t *index; /* hash index: 1 + the last entry with that key, or 0; n_slots is a power of two */
    uint32_t n_slots;
    uint64_t seen[BATCH_SEEN]; /* calls on several keys: a bit for the hash of each key; keys may share a bit */
    char words[];              /* question.words */
};

/* The words are copied. NULL: out of memory. */
struct batch *batch_new(const struct batch_question *question);
void batch_free(struct batch *batch); /* not its calls */

/* True if a call that asks this can be added to it. */
bool batch_fits(const struct batch *batch, const struct batch_question *question);

/* True if it may ask about this key, which no later question about the key may overtake. */
bool batch_concerns(const struct batch *batch, struct slice key, uint64_t hash);

/* Note that a call on several keys asks about a key with this hash. Returns its bit for batch_entry.bits. */
uint64_t batch_note_key(struct batch *batch, uint64_t hash);

/*
 * Add one. `hash` is that of decision->key, and `bits` are those of its keys, if there are several. It is put behind
 * all that ask about one of its keys. False: out of memory.
 */
__attribute__((warn_unused_result)) bool batch_add(struct batch *batch, struct decision *decision, uint64_t hash,
                                                   uint64_t bits);

/* Into a list by in_exchange, behind all that were begun before it. */
void batch_put_in_order(struct list *batches, struct batch *batch);

/*
 * Move its last entry into a batch of its own, which has its place in the order. NULL: out of memory, and nothing is
 * changed. Only while it is in no list, and has more than one.
 */
struct batch *batch_split(struct batch *batch);

static inline enum script batch_script(const struct batch *batch)
{
    return batch->question.algorithm->script;
}

/* How long it will keep Redis busy. */
static inline uint32_t batch_work_us(const struct batch *batch)
{
    return batch->n * batch->question.work_us;
}

/*
 * The request: EVALSHA, EVAL if is_whole, or UNLINK. `script` is the hash or the source. To be
 * freed. NULL: out of memory.
 */
char *batch_write(const struct batch *batch, struct slice script, size_t *len);

/* ---- answers: each function but batch_take frees the batch ---- */

struct quota_hold;

/* What the owner of the calls hears. */
struct batch_ops {
    /* The numbers that the script returned for an entry. Each of its calls must be taken with batch_take. */
    void (*on_numbers)(const struct batch *batch, struct batch_entry *entry, const int64_t *numbers,
                       const struct quota_hold *holds);
    /* Its keys have been deleted; n of them existed. */
    void (*on_deleted)(struct decision *decision, int64_t n);
    /* `error` is a whole reply. is_down: Redis is away or does not answer; whether it was asked is not known. */
    void (*on_failed)(struct decision *decision, struct slice error, bool is_down);
};

/* Remove and return the first call of an entry. */
struct decision *batch_take(struct batch_entry *entry);

/* All its calls hear this error; is_down as in batch_ops. */
void batch_fail(const struct batch_ops *ops, struct batch *batch, struct slice error, bool is_down);

/* The whole reply of that node, not an error. */
void batch_answer(const struct batch_ops *ops, struct batch *batch, struct node *node, struct slice reply);

/* Free the batch and its calls: their clients have gone. */
void batch_drop(struct batch *batch);

/*
 * An error of a script or about it: where it says that weir lacks a right, one that says which, in `out`
 * (LACK_ERROR_ROOM bytes) and in node->lacks; else the same.
 */
struct slice batch_explain(struct node *node, struct slice error, char *out);

#endif
