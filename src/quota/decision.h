/*
 * A decision: one LIMIT call of a client that Redis decides; what it asks, how far it has come, and
 * what is counted.
 */
#ifndef WEIR_QUOTA_DECISION_H
#define WEIR_QUOTA_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/ask.h"
#include "quota/named.h"
#include "resp/build.h"

struct ask_memo;
struct quota;
struct quota_outcome;
struct quota_settings;

/*
 * limit-cell: CL.THROTTLE gets the prefix as LIMIT does; uses the key as it is, in the client's database; or is not
 * weir's and goes to Redis.
 */
enum quota_cell { QUOTA_CELL_PREFIX, QUOTA_CELL_RAW, QUOTA_CELL_OFF };

/* For each key of a call on several keys, what is not in its ask. */
struct quota_part {
    struct slice shown; /* for refused_by in the reply: the limit's name, or the key as the client wrote it */
    struct named_tally *tally;
    enum quota_when_down when_down;
};

struct decision {
    struct list in_client; /* for the owner's list */
    struct list in_entry;  /* in batch_entry.calls */
    struct quota *quota;
    struct quota_ask ask;     /* its slices point into text */
    struct slice key;         /* in Redis, with its prefix; of several keys all of them, as bulks */
    uint32_t n_keys;          /* how many bulks `key` is; 0: it is one key, no bulk */
    uint8_t n_parts;          /* several keys, all or nothing: how many; else 0 */
    struct quota_ask *asks;   /* what is asked of each: ask.parts */
    struct quota_part *parts; /* and the rest about each */
    unsigned database;
    uint64_t until_ns; /* until when it may wait; 0: not at all */
    uint64_t asked_ns; /* since when Redis is asked, decision_renew included */
    struct alarm alarm;
    struct alarms *alarms;     /* where room for the alarm is reserved; NULL: nowhere, and it is never set */
    struct list in_listener;   /* in release_listener.waiting, while it waits until a holder releases */
    uint64_t failover_wait_ns; /* how long it may wait for a master, once Redis has said that it is none */
    enum quota_when_down when_down;
    bool is_down_by_error;     /* by all of its limits: when-error = down */
    struct named_tally *tally; /* of the named limit that it asks; one reference; NULL: none */
    struct build reply;        /* once is_done */
    bool is_asking;            /* it is in a batch */
    bool is_done;
    bool has_turn;   /* it passes at a later time, and waits for that (until its alarm) */
    bool is_called;  /* a holder released while it was asking: the reply that is on its way may be outdated */
    bool is_hurried; /* it must not wait any more */
    bool has_waited; /* it has been asked before, and waited for a window or a permit since */
    bool is_muted;   /* the owner's: its reply is not sent (CLIENT REPLY) */
    bool is_limited; /* once is_done: it was refused ... */
    bool is_failed;  /* ... or could not be decided */
    bool is_shadow;  /* its limit is in shadow mode */
    bool is_waiting; /* it was refused, and asks again later; its named limit may have changed since */
    bool is_renewed; /* its key held another algorithm's state, and was deleted for that */
    /* While keys are being deleted for that, one after the other: its kind meanwhile saved here, ... */
    uint8_t kind, n_renewed; /* ... of several keys how many are done, */
    struct slice all_keys;   /* ... and `key` */
    uint8_t refusing;        /* several keys: bits of those that had no room */
    /* RESET of several keys on a cluster: a deletion for each, which is a decision of its own. */
    struct decision *whole; /* of such a part the call; NULL: it is a call */
    uint32_t n_open;        /* of the call: parts without an answer */
    int64_t n_deleted;      /* keys that existed, of those that are answered */
    void *owner;            /* NULL: the client has gone */
    /* For the owner's measurements: since when it was the next of its client, how long limits made it wait, its tag. */
    uint64_t arrived_ns; /* 0: not measured */
    uint32_t waited_us;
    uint32_t share_us;
    uint64_t tag; /* upstream/lane/calls.h */
    char token[33];
    char text[];
};

/* Iterates over its keys, if they are bulks. */
static inline struct argv_walk decision_keys(const struct decision *decision)
{
    return (struct argv_walk){decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
}

/*
 * What a call needs beside its request: the client's user, database and protocol, and settings.
 */
struct quota_context {
    struct slice prefix; /* limit-prefix as configured: see prefix.h */
    struct slice user;   /* empty: not logged in, or `default` */
    unsigned database;
    bool has_database; /* false: weir does not know which it is, and a raw key is refused */
    bool is_resp3;
    enum quota_when_down when_down;
    bool is_down_by_error; /* limit-when-error = down */
    uint64_t failover_wait_ns;
    enum quota_cell cell;
    const struct named *named; /* for CHECK */
    uint64_t now_ns;
};

/*
 * From a whole multibulk request of the command `name`; `memo` is the worker's. NULL: an error, out of memory included;
 * `error` is its reply.
 */
struct decision *decision_new(struct quota *quota, const struct quota_context *context, struct ask_memo *memo,
                              struct slice name, struct slice request, void *owner, struct build *error);

/* One that is done already, with this reply. NULL: out of memory. */
struct decision *decision_answered(struct quota *quota, struct slice reply, void *owner);

/* The part of a call that asks for this one key of it, a bulk of decision->key. NULL: out of memory. */
struct decision *decision_part(struct decision *whole, struct slice key);

/* It is in no list, and its alarm is not set. */
void decision_free(struct decision *decision);

/* The same after its client has gone, and of the call that it is the last part of. */
void decision_drop(struct decision *decision);

/*
 * When an operator has given a named limit another algorithm.
 *
 * Keys in which a call finds the former algorithm's state are deleted, one after the other, and
 * then the call is asked again. Meanwhile the decision asks for the deletion of one of its keys;
 * the caller sends it.
 */

/* True if an error says that a key has another algorithm's state; only once for each call. */
bool decision_is_outdated(const struct decision *decision, struct slice error);

/* For PEEK, which deletes nothing: the outcome that it would have if the key did not exist. */
void decision_look_anew(const struct decision *decision, struct quota_outcome *outcome);

/* Change the call into the deletion of its key, or of the first of them. */
void decision_renew(struct decision *decision);

/* After that has been answered: change it into the deletion of the next key; after the last, back into what it was. */
void decision_renew_next(struct decision *decision, bool is_deleted);

/* After a failure: change it back into what it was. */
void decision_renew_end(struct decision *decision);

/*
 * Count a call that is done for the named limits that it asked, in their tallies and among the keys
 * that are refused most. One with PEEK counts nowhere. Of several limits each counts what it would
 * have said alone.
 */
void decision_count(const struct decision *decision, const struct quota_settings *settings, uint64_t now_ns);

#endif
