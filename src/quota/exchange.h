/*
 * One worker's questions to Redis' scripts and their answers: calls of one turn of the loop are sent together, as few
 * batches.
 *
 * Questions about one key are decided in the order in which they were asked. After NOSCRIPT a batch is sent once more,
 * with its script, and no later question about its keys overtakes it.
 *
 * A batch that Redis has not run, since it is no master (unable.h), is asked again until failover-wait is over, at another
 * node if that is the master by then. It is decided once. Later questions about its keys wait behind it.
 *
 * Sent or not, no question waits longer than upstream-timeout: when the oldest has, all that are asked fail, and later
 * ones fail at once until Redis has answered a new connection (circuit.h). An alarm has that connection opened.
 */
#ifndef WEIR_QUOTA_EXCHANGE_H
#define WEIR_QUOTA_EXCHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "quota/script_conn.h"
#include "quota/settings.h"

struct exchange;
struct quota_hold;

struct exchange_ops {
    /* The numbers that the script returned for an entry. Each of its calls must be taken with exchange_take. */
    void (*on_numbers)(struct exchange *exchange, const struct batch *batch, struct batch_entry *entry,
                       const int64_t *numbers, const struct quota_hold *holds);
    /* Its keys have been deleted; n of them existed. */
    void (*on_deleted)(struct decision *decision, int64_t n);
    /* `error` is a whole reply. is_down: Redis is away or does not answer; whether it was asked is not known. */
    void (*on_failed)(struct decision *decision, struct slice error, bool is_down);
};

struct exchange {
    struct script_conn conn;
    struct list open;        /* batches that are still being filled */
    struct list sent;        /* and those that wait for their answer, oldest first */
    struct list refused;     /* that Redis has not run, or that wait behind one of those; by batch.order */
    uint64_t n_batches;      /* that were begun */
    struct alarm again;      /* set while any is refused: they are asked again */
    uint64_t moves_until_ns; /* Redis has said that it is no master: until then another may be; 0: it has not */
    struct lanes *refuser;   /* that lead to where the last was refused */
    uint32_t sent_us;        /* how long those keep Redis busy, estimated */
    struct alarm patience;   /* set while anything is asked, if there is an upstream-timeout: the oldest may be due */
    struct alarm probe;      /* set while the circuit is open: Redis is to be tried */
    struct alarms *alarms;   /* with room for both */
    const struct quota_settings *settings;
    const struct exchange_ops *ops;
};

struct exchange_question {
    const struct quota_algorithm *algorithm; /* without a script: delete the keys */
    struct slice words;                      /* ARGV for the script, as n_words bulks; the same for a whole batch */
    unsigned n_words;
    unsigned work_us; /* how long it keeps Redis busy */
};

#define EXCHANGE_ALARMS 3

/* All outlive it; `alarms` has room for EXCHANGE_ALARMS. It takes over the reference on `login`. */
void exchange_init(struct exchange *exchange, struct lanes *lanes, struct alarms *alarms, struct login *login,
                   const struct quota_settings *settings, const struct exchange_ops *ops);

/* Frees the calls that are still in it: their owners have gone. */
/* From now on at the node that these lead to. */
void exchange_move(struct exchange *exchange, struct lanes *lanes);

void exchange_fini(struct exchange *exchange);

uint64_t exchange_hash(const struct exchange *exchange, struct slice key);

/*
 * Ask about its keys at the end of this iteration; the time for that began at decision->asked_ns. `hash` is
 * exchange_hash of decision->key. False: out of memory.
 */
bool exchange_ask(struct exchange *exchange, struct decision *decision, const struct exchange_question *question,
                  uint64_t hash);

/* May a question about the key be unanswered (false positives are possible)? */
bool exchange_concerns(const struct exchange *exchange, struct slice key, uint64_t hash);

/* Remove and return the first call of an entry that has been answered. */
struct decision *exchange_take(struct batch_entry *entry);

#endif
