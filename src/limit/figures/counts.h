/*
 * What is counted of the clients of one worker, and how long their commands took: written by the worker, read by any
 * thread (base/count.h).
 *
 * Every number only grows, unless it says otherwise; the functions below give the words that metrics show.
 */
#ifndef WEIR_LIMIT_COUNTS_H
#define WEIR_LIMIT_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/count.h"
#include "base/err.h"
#include "base/histo.h"
#include "limit/command/command.h"

/*
 * ---- times ----
 *
 * How long commands took, as histograms. A client sees a reply only once it has been written, which
 * happens for all replies of a turn together. Until then the commands answered in this turn wait in
 * `struct answered`; commands with the same times are one entry.
 */

struct times {
    struct histo request;  /* from when a command is the next of its client until its reply has been written */
    struct histo upstream; /* the part between sending it to Redis and the reply */
    struct histo overhead; /* request - upstream - delay - share: weir's own time */
    struct histo delay;    /* how long limits made commands wait; only of commands that had to */
    struct histo held;     /* `request` of those that had to ... */
    struct histo released; /* ... and the same without the wait: request - held + released is what is not deliberate */
    struct histo share;    /* how long clients waited for their fair share; only where they had to */
};

#define ANSWERED_MAX 256 /* entries; when there are more in one turn, times end with the reply's arrival */

struct answered {
    unsigned n;
    struct timed {
        uint64_t arrived_ns;  /* since when it was the next of its client */
        uint64_t sent_ns;     /* to Redis; 0: answered by weir */
        uint64_t answered_ns; /* when the reply arrived */
        uint32_t waited_us;   /* how long limits made it wait */
        uint32_t share_us;    /* how long it waited for its fair share */
        uint32_t n;           /* how many commands with these times */
    } entries[ANSWERED_MAX];
};

/* Add all entries to the histograms, with now_ns as the time at which they were written; then there are none. */
void answered_count(struct answered *answered, struct times *times, uint64_t now_ns);

/* timed->n commands have been answered; their replies have not been written yet. */
static inline void answered_add(struct answered *answered, struct times *times, const struct timed *timed)
{
    struct timed *last = answered->n > 0 ? &answered->entries[answered->n - 1] : NULL;
    if (last != NULL && last->arrived_ns == timed->arrived_ns && last->sent_ns == timed->sent_ns &&
        last->answered_ns == timed->answered_ns && last->waited_us == timed->waited_us &&
        last->share_us == timed->share_us) {
        last->n += timed->n;
        return;
    }
    if (answered->n == ANSWERED_MAX)
        answered_count(answered, times, timed->answered_ns);
    answered->entries[answered->n++] = *timed;
}

/* All replies have been written at written_ns. */
static inline void answered_written(struct answered *answered, struct times *times, uint64_t written_ns)
{
    if (answered->n > 0)
        answered_count(answered, times, written_ns);
}

/* What became of a command. */
enum counted_result {
    RESULT_FORWARDED,
    RESULT_THROTTLED, /* refused by a limit */
    RESULT_DELAYED,   /* forwarded after a limit had delayed it */
    RESULT_SHADOW,    /* forwarded, though a limit in shadow mode would have refused it */
    RESULT_LOCAL,     /* answered by weir */
    RESULT_ERROR,     /* answered with an error other than a limit's: upstream away, unknown command ... */
    RESULT_COUNT
};

/* Why a new connection was refused. */
enum rejection {
    REJECTED_MAX_CLIENTS,
    REJECTED_RATE,
    REJECTED_MEMORY,
    REJECTED_TLS,
    REJECTED_UNAUTHENTICATED, /* too many of its address are not bound yet */
    REJECTED_NO_ADDRESS,      /* over TCP, and the system did not tell the peer's address */
    REJECTED_COUNT
};

/* Why a connection was closed. */
enum ending_reason {
    CLOSED_BY_CLIENT,
    CLOSED_UPSTREAM, /* its lane was lost, or Redis no longer accepts its login */
    CLOSED_PROTOCOL,
    CLOSED_BUFFER, /* output-limit: it did not read its replies */
    CLOSED_LIMIT,
    CLOSED_PROXY,     /* no valid PROXY header, or from an address that may not send one */
    CLOSED_IDLE,      /* idle-timeout */
    CLOSED_KICKED,    /* by an operator */
    CLOSED_REQUEST,   /* request-timeout */
    CLOSED_HANDSHAKE, /* handshake-timeout, or the handshake failed */
    CLOSED_DRAIN,     /* weir stops */
    CLOSED_MEMORY,    /* an allocation for it failed */
    CLOSED_COUNT
};

/* What an outage of the upstream, or a change of its master, has done to requests. */
enum outage_fate {
    FATE_WAITED,  /* requests that began to wait for a connection */
    FATE_REFUSED, /* requests that were answered by an error, or closed their connection, as none could be had in time */
    FATE_AGAIN,   /* requests that were sent again, as Redis had not run them */
    FATE_LOST,    /* connections that were closed with requests in flight */
    FATE_COUNT
};

#define COUNTED_LISTENERS 17 /* the first 16, and one for all others together */
#define COUNTED_OWN 64       /* at least the rows of own.def */

struct listener_counts {
    _Atomic uint64_t accepted;
    _Atomic uint64_t accept_errors; /* accept failed for lack of descriptors */
    _Atomic uint64_t rejected[REJECTED_COUNT];
    _Atomic uint64_t closed[CLOSED_COUNT]; /* not those rejected before they were clients: rejection_is_early */
};

struct counts {
    _Atomic uint64_t commands[COMMAND_KINDS][RESULT_COUNT];
    struct listener_counts listeners[COUNTED_LISTENERS];
    _Atomic uint64_t own[COUNTED_OWN][2]; /* weir's own commands, by row of own.def: answered, refused with an error */
    _Atomic uint64_t protocol_errors[ERR_COUNT];
    _Atomic uint64_t fates[FATE_COUNT];
    _Atomic uint64_t stalled; /* a gauge: clients that are not read from because memory is short */
    struct times times;
};

/* "forwarded" ...; "maxclients" ...; "client" ...; "inline" ..., NULL for an error that is not of the protocol. */
const char *counted_result_name(enum counted_result result);
const char *rejection_name(enum rejection rejection);

/* True if a connection rejected so never was a client, so that its end is not counted in `closed`. */
bool rejection_is_early(enum rejection rejection);

const char *ending_reason_name(enum ending_reason reason);
const char *protocol_error_name(enum err error);
const char *outage_fate_name(enum outage_fate fate); /* "waited" ... */

#endif
