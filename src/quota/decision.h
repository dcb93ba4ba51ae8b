/*
 * A decision: one LIMIT call of a client that Redis decides. struct decision holds the request, the
 * progress, and what the counters need.
 *
 * Owner: the client that called quota_begin, until quota_end or quota_cancel. Thread: the worker's.
 */
#ifndef WEIR_QUOTA_DECISION_H
#define WEIR_QUOTA_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/decision_request.h"
#include "quota/named.h"
#include "resp/build.h"

struct request_memo;
struct quota;
struct quota_outcome;
struct quota_settings;

/*
 * cl-throttle: CL.THROTTLE gets the prefix as LIMIT does; or uses the key unchanged, in the
 * client's database; or is left to Redis.
 */
enum quota_cell { QUOTA_CELL_PREFIX, QUOTA_CELL_RAW, QUOTA_CELL_OFF };

/* Data for each key of a call on several keys, beside the request for that key. */
struct quota_part {
    /* refused_by in the reply: the limit's name, or the key as the client wrote it */
    struct slice shown;
    struct named_counters *counters;
    enum quota_when_down when_down;
};

struct decision {
    struct list in_client; /* in the owner's list */
    struct list in_entry;  /* in batch_entry.calls */
    struct quota *quota;
    struct decision_request ask; /* the slices of the request point into text */
    /* the key in Redis, with prefix; if several keys: all keys, as bulks */
    struct slice key;
    uint32_t n_keys;               /* number of bulks in `key`; 0: one key, no bulk */
    uint8_t n_parts;               /* number of keys, if several keys, all or nothing; else 0 */
    struct decision_request *asks; /* several keys: the request for each; ask.parts points here */
    struct quota_part *parts;      /* several keys: further data for each */
    unsigned database;
    uint64_t until_ns; /* the end of WAIT; 0: the call does not wait */
    uint64_t asked_ns; /* start of the present try, which a renewal is part of */
    struct alarm alarm;
    /* where room for the alarm is reserved; NULL: no room, and the alarm is never set */
    struct alarms *alarms;
    struct list in_listener; /* in release_listener.waiting, while the call waits for a release */
    /* how long the call may wait for a master, once Redis has said that it is no master */
    uint64_t failover_wait_ns;
    enum quota_when_down when_down;
    bool is_down_by_error; /* all limits of the call have when-error = down */
    /* counters of the call's named limit; one reference; NULL: none */
    struct named_counters *counters;
    struct build reply; /* valid once is_done */
    bool is_asking;     /* the call is in a batch */
    bool is_done;
    bool has_turn; /* the call passes at a scheduled time, and waits for its alarm */
    /* a release arrived while the call was in a batch: the pending reply may be outdated */
    bool is_called;
    bool is_hurried; /* the call must not wait any more */
    bool has_waited; /* the call was sent before, and has waited for a window or a permit since */
    bool is_muted;   /* set by the owner: the reply is not sent (CLIENT REPLY) */
    bool is_limited; /* once is_done: the call was refused */
    bool is_failed;  /* once is_done: the call could not be decided */
    bool is_shadow;  /* the limit is in shadow mode */
    /* the call was refused, and is retried later; its named limit may have changed since */
    bool is_waiting;
    bool is_renewed; /* the key held another algorithm's state, and was deleted for that reason */
    /*
     * Set while keys with another algorithm's state are deleted one by one. kind: the call's own
     * kind. n_renewed: how many of several keys are done. all_keys: the call's own `key`.
     */
    uint8_t kind, n_renewed;
    struct slice all_keys;
    uint8_t refusing; /* several keys: one bit for each key without room */
    /*
     * RESET of several keys on a cluster sends one deletion for each key. Each deletion is a
     * decision of its own, a part.
     */
    struct decision *whole; /* of a part: the call; NULL: not a part */
    uint32_t n_open;        /* of the call: parts without an answer */
    int64_t n_deleted;      /* number of keys that existed, of the answered parts */
    void *owner;            /* NULL: the client has closed */
    /*
     * For the owner's measurements: when the call became the client's next request, how long limits
     * and the fair share delayed the call, and its tag.
     */
    uint64_t arrived_ns; /* 0: not measured */
    uint32_t waited_us;
    uint32_t share_us;
    uint64_t tag; /* upstream/lane/calls.h */
    char token[33];
    char text[];
};

/* Iterates over the keys, if `key` consists of bulks. */
static inline struct argv_walk decision_keys(const struct decision *decision)
{
    return (struct argv_walk){decision->key.at, decision->key.at + decision->key.len,
                              decision->n_keys};
}

/* What a call needs beside its request: the client's user, database and protocol, and settings. */
struct quota_context {
    struct slice prefix; /* limit-prefix as configured: see prefix.h */
    struct slice user;   /* empty: not logged in, or `default` */
    unsigned database;
    bool has_database; /* false: weir does not know the database, and a raw key is refused */
    bool is_resp3;
    enum quota_when_down when_down;
    bool is_down_by_error; /* limit-when-error = down */
    uint64_t failover_wait_ns;
    enum quota_cell cell;
    const struct named *named; /* for CHECK */
    uint64_t now_ns;
};

/*
 * Creates a decision from a whole multibulk request of the command `name`. `memo` is the worker's.
 * NULL: an error, out of memory included, and `error` is the error reply.
 */
struct decision *decision_new(struct quota *quota, const struct quota_context *context,
                              struct request_memo *memo, struct slice name, struct slice request,
                              void *owner, struct build *error);

/* Creates a decision that is done already, with this reply. NULL: out of memory. */
struct decision *decision_answered(struct quota *quota, struct slice reply, void *owner);

/* Creates the part of a call for one of its keys, a bulk of decision->key. NULL: out of memory. */
struct decision *decision_part(struct decision *whole, struct slice key);

/* The decision must be in no list, and its alarm must not be set. */
void decision_free(struct decision *decision);

/*
 * decision_free for a decision of a closed client. Also frees the whole call when its last part is
 * freed.
 */
void decision_drop(struct decision *decision);

/*
 * Renewal: an operator has given a named limit another algorithm.
 *
 * Keys with the former algorithm's state are deleted one by one, and the call is sent again.
 * Meanwhile the decision requests the deletion of one key at a time, and the caller sends that
 * request.
 */

/*
 * True if `error` says that a key has another algorithm's state. True at most once for each call.
 */
bool decision_is_outdated(const struct decision *decision, struct slice error);

/*
 * For PEEK, which deletes nothing: computes the outcome that the call would have if the key did not
 * exist.
 */
void decision_look_anew(const struct decision *decision, struct quota_outcome *outcome);

/* Turns the call into the deletion of its key, or of the first of its keys. */
void decision_renew(struct decision *decision);

/*
 * After a deletion has been answered: turns the call into the deletion of the next key. After the
 * last key: turns the call back into the original call.
 */
void decision_renew_next(struct decision *decision, bool is_deleted);

/* After a failure: turns the call back into the original call. */
void decision_renew_end(struct decision *decision);

/*
 * Counts a finished call for its named limits, in their counters and among the most refused keys. A
 * call with PEEK is not counted. Of several limits each counts its own result, as if it were the
 * only limit.
 */
void decision_count(const struct decision *decision, const struct quota_settings *settings,
                    uint64_t now_ns);

#endif
