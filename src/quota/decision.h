/*
 * One LIMIT call of a client that Redis decides: what it asks, and where it stands.
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

struct quota;

/*
 * What becomes of CL.THROTTLE: its key is under the prefix, or as it is in the client's database; or it is not weir's.
 */
enum quota_cell { QUOTA_CELL_PREFIX, QUOTA_CELL_RAW, QUOTA_CELL_OFF };

/* Of a call on several keys, beside what one of them is asked. */
struct quota_part {
    struct slice shown; /* what refused_by calls it: the limit's name, or the key as the client wrote it */
    struct named_tally *tally;
    enum quota_when_down when_down;
};

/* One LIMIT call of a client. */
struct decision {
    struct list in_client; /* the owner's */
    struct list in_entry;
    struct quota *quota;
    struct quota_ask ask;     /* its slices point into text */
    struct slice key;         /* as it is called in Redis; of several all of them, as bulks one behind the other */
    uint32_t n_keys;          /* of several; else 0 */
    uint8_t n_parts;          /* of several, all or nothing: so many; else 0 */
    struct quota_ask *asks;   /* what each is asked: ask.parts */
    struct quota_part *parts; /* and what else is known of it */
    unsigned database;
    uint64_t until_ns; /* how long it may wait; 0: not at all */
    struct alarm alarm;
    struct alarms *alarms;   /* where it has been reserved; NULL: nowhere, and it is never set */
    struct list in_listener; /* while it waits for a place */
    enum quota_when_down when_down;
    struct named_tally *tally; /* of the named limit that it asks; one reference; NULL: of none */
    struct build reply;        /* once it is done */
    bool is_asking;            /* it is part of a question */
    bool is_done;
    bool has_turn;   /* it has been let through, and waits for its turn */
    bool is_called;  /* a place came free while it was asking: what it hears may be old */
    bool is_hurried; /* it is not to wait any more */
    bool is_muted;   /* nobody wants to hear it; for the owner */
    bool is_limited; /* what was decided, */
    bool is_failed;  /* or that it was not; once it is done */
    bool is_shadow;  /* its limit limits nobody */
    bool is_waiting; /* it has been refused, and is asked again: its limit may be another since */
    bool is_renewed; /* its key had another algorithm's state, and has been deleted for that */
    /* What it asks for, while its keys are about to be: this, of these; and of several keys so many have been. */
    uint8_t kind, n_rates, n_renewed;
    struct slice all_keys;
    uint8_t refusing; /* of several keys: those that had no room, as bits */
    void *owner;      /* NULL: the client has gone */
    /* The owner's: since when it was the next of its client, what a limit had made it wait, what it was. */
    uint64_t arrived_ns; /* 0: not measured */
    uint32_t waited_us;
    uint32_t tag;
    char token[33];
    char text[];
};

/*
 * What goes with the request: the client's user, database and protocol, the configured prefix, what to do without
 * Redis.
 */
struct quota_context {
    struct slice prefix; /* as it is configured: prefix.h */
    struct slice user;   /* empty: none but `default` */
    unsigned database;
    bool is_resp3;
    enum quota_when_down when_down;
    enum quota_cell cell;
    const struct named *named; /* for CHECK, */
    uint64_t now_ns;           /* and when */
};

/* Of a whole multibulk request of the command `name`. NULL: it is wrong, or there is no memory, and `error` says so. */
struct decision *decision_new(struct quota *quota, const struct quota_context *context, struct slice name,
                              struct slice request, void *owner, struct build *error);

/* One that has been answered already, with a whole reply. NULL: no memory. */
struct decision *decision_answered(struct quota *quota, struct slice reply, void *owner);

/* Its alarm may be set among these. False: out of memory. */
__attribute__((warn_unused_result)) bool decision_reserve(struct decision *call, struct alarms *alarms);

/* It is in no list, and no alarm is set for it. */
void decision_free(struct decision *call);

#endif
