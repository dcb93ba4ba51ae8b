/*
 * A batch: LIMIT calls that travel to Redis as one EVALSHA with many keys, from the first call to
 * the answers of all calls.
 *
 * A batch has an entry for each key, with the calls on that key. The whole reply is checked before
 * any part of it is used.
 *
 * Thread: the worker's.
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

/*
 * How long a batch may occupy Redis. Chosen, so that other clients of Redis are not delayed for
 * long. A single call takes at most this long.
 */
#define BATCH_WORK_US 1000

/* One key, or one set of several keys, and the equal calls on it. */
struct batch_entry {
    struct list calls; /* struct decision by in_entry, in order of arrival */
    uint32_t n;
    uint32_t changes; /* quota_changes of the key when the batch was sent */
    uint64_t hash;    /* hash of the key */
    uint64_t bits;    /* several keys: a bit for the hash of each; different keys may share a bit */
};

static inline struct decision *batch_first_call(const struct batch_entry *entry)
{
    return container_of(entry->calls.next, struct decision, in_entry);
}

/* What all calls of a batch have in common: the script and its arguments. */
struct batch_question {
    const struct quota_algorithm *algorithm; /* without a script: UNLINK of one call's keys */
    struct slice words;                      /* ARGV for the script, as n_words bulks */
    unsigned n_words;
    unsigned work_us; /* how long each entry occupies Redis, at worst */
};

struct script_node;

struct batch {
    struct list in_exchange;
    struct list in_slot;      /* in a list of routes.near until sent; else empty */
    struct script_node *node; /* the exchange's node that the batch is or was sent to */
    /* cluster slot of all keys of the batch; 0 unless the upstream is a cluster */
    uint16_t slot;
    uint8_t n_hops; /* number of redirects that the batch has followed */
    /* sent behind ASKING: the node imports the slot, and the source node answered ASK */
    bool is_asking;
    uint64_t order;    /* sequence number among the exchange's batches */
    uint64_t until_ns; /* end of the wait, set when the batch first waits for a retry; 0: never */
    uint64_t again_ns; /* when the retry is due, while the batch waits for a retry */
    uint64_t pause_ns; /* wait before the retry; grows with each retry */
    char *refusal;     /* the last error for which the batch waits; heap; NULL: none */
    struct batch_question question;
    uint64_t asked_ns; /* the earliest asked_ns of the calls */
    uint64_t sent_ns;
    bool is_away; /* the last failure was a missing connection */
    /* the batch carries its script (EVAL): after NOSCRIPT, or without the right to call by hash */
    bool is_whole;
    uint32_t n;                  /* number of entries */
    struct batch_entry *entries; /* heap, with room for `room` */
    uint32_t room;
    /* hash index: 1 + the last entry with that key, or 0; n_slots is a power of two */
    uint16_t *index;
    uint32_t n_slots;
    /* calls on several keys: a bit for the hash of each key; keys may share a bit */
    uint64_t seen[BATCH_SEEN];
    char words[]; /* question.words */
};

/* Copies the words. NULL: out of memory. */
struct batch *batch_new(const struct batch_question *question);
void batch_free(struct batch *batch); /* does not free the calls */

/* True if a call with this script and these arguments can join the batch. */
bool batch_fits(const struct batch *batch, const struct batch_question *question);

/*
 * True if the batch may have a call about this key, which no later call about the key may overtake.
 */
bool batch_concerns(const struct batch *batch, struct slice key, uint64_t hash);

/*
 * Notes that a call on several keys has a key with this hash. Returns the key's bit for
 * batch_entry.bits.
 */
uint64_t batch_note_key(struct batch *batch, uint64_t hash);

/*
 * Adds a call, behind all calls about one of its keys. `hash` is the hash of decision->key. `bits`
 * are the bits of the call's keys, if there are several. False: out of memory.
 */
__attribute__((warn_unused_result)) bool batch_add(struct batch *batch, struct decision *decision,
                                                   uint64_t hash, uint64_t bits);

/* Inserts the batch into a list by in_exchange, behind all batches that were begun earlier. */
void batch_put_in_order(struct list *batches, struct batch *batch);

/*
 * Moves the last entry into a new batch with the same order. NULL: out of memory, and nothing has
 * changed. Call only while the batch is in no list, and has more than one entry.
 */
struct batch *batch_split(struct batch *batch);

static inline enum script batch_script(const struct batch *batch)
{
    return batch->question.algorithm->script;
}

/* Returns how long the batch will occupy Redis, in us, at worst. */
static inline uint32_t batch_work_us(const struct batch *batch)
{
    return batch->n * batch->question.work_us;
}

/*
 * Writes the request: EVALSHA, EVAL if is_whole, or UNLINK. `script` is the hash or the source. The
 * caller frees the result. NULL: out of memory.
 */
char *batch_write(const struct batch *batch, struct slice script, size_t *len);

/* ---- answers: each function but batch_take and batch_explain frees the batch ---- */

struct quota_hold;

/* Callbacks of the owner of the calls. */
struct batch_ops {
    /*
     * The integers that the script returned for an entry. The callback takes each call with
     * batch_take.
     */
    void (*on_numbers)(const struct batch *batch, struct batch_entry *entry, const int64_t *numbers,
                       const struct quota_hold *holds);
    /* The keys of the call have been deleted; n of them existed. */
    void (*on_deleted)(struct decision *decision, int64_t n);
    /*
     * `error` is a whole reply. is_down: Redis is unreachable or does not answer, and may or may
     * not have run the call.
     */
    void (*on_failed)(struct decision *decision, struct slice error, bool is_down);
};

/* Removes and returns the first call of an entry. */
struct decision *batch_take(struct batch_entry *entry);

/* Fails all calls of the batch with this error; is_down as in batch_ops. */
void batch_fail(const struct batch_ops *ops, struct batch *batch, struct slice error, bool is_down);

/* Takes the node's whole reply, which is not an error. */
void batch_answer(const struct batch_ops *ops, struct batch *batch, struct node *node,
                  struct slice reply);

/* Frees the batch and its calls, because the clients have closed. */
void batch_drop(struct batch *batch);

/*
 * Takes an error of a script or about a script. If weir lacks a right: returns an error that names
 * the right, in `out` (LACK_ERROR_ROOM bytes), and sets the right in node->lacks. Else returns
 * `error`.
 */
struct slice batch_explain(struct node *node, struct slice error, char *out);

#endif
