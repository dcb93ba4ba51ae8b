/*
 * Counters of the clients of one worker, and the times of their commands. The worker writes these
 * counters; any thread reads them (base/count.h).
 *
 * Every counter only grows, unless marked as a gauge. The functions *_name return the words shown
 * in metrics.
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
 * The times of commands, as histograms. A client sees a reply only once it is written, and all
 * replies of an iteration are written together. Until the write, the commands answered in this
 * iteration wait in `struct answered`. Commands with equal times share one entry.
 */

struct times {
    /* from when a command is first in its client's queue until its reply is written */
    struct histo request;
    struct histo upstream; /* from sending the command to Redis until the reply arrives */
    struct histo overhead; /* weir's own time: request - upstream - delay - share */
    struct histo delay;    /* wait for limits; only of commands that waited */
    struct histo held;     /* `request` of commands that waited for limits */
    /*
     * `held` less the wait for limits. request - held + released is the time of all commands
     * without the waits for limits.
     */
    struct histo released;
    struct histo share; /* wait for the fair share; only of commands that waited */
};

/* entries; with more in one iteration, times end at the arrival of the reply */
#define ANSWERED_MAX 256

struct answered {
    unsigned n;
    struct timed {
        uint64_t arrived_ns;  /* when the command became first in its client's queue */
        uint64_t sent_ns;     /* when the request was sent; 0: answered by weir */
        uint64_t answered_ns; /* when the reply arrived */
        uint32_t waited_us;   /* wait for limits */
        uint32_t share_us;    /* wait for the fair share */
        uint32_t n;           /* number of commands with these times */
    } entries[ANSWERED_MAX];
};

/* Adds all entries to the histograms, with now_ns as the time of the write, and clears them. */
void answered_count(struct answered *answered, struct times *times, uint64_t now_ns);

/* Adds timed->n commands that are answered and have replies not yet written. */
static inline void answered_add(struct answered *answered, struct times *times,
                                const struct timed *timed)
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

/* Notes that all replies were written at written_ns. */
static inline void answered_written(struct answered *answered, struct times *times,
                                    uint64_t written_ns)
{
    if (answered->n > 0)
        answered_count(answered, times, written_ns);
}

/* The result of a command. */
enum counted_result {
    RESULT_FORWARDED,
    RESULT_THROTTLED, /* refused by a limit */
    RESULT_DELAYED,   /* forwarded after a limit had delayed it */
    RESULT_SHADOW,    /* forwarded, but a limit in shadow mode would have refused it */
    RESULT_LOCAL,     /* answered by weir */
    /* answered with an error other than a limit's: upstream away, unknown command ... */
    RESULT_ERROR,
    RESULT_COUNT
};

/* Why a new connection was refused. */
enum rejection {
    REJECTED_MAX_CLIENTS,
    REJECTED_RATE,
    REJECTED_MEMORY,
    REJECTED_TLS,
    REJECTED_UNAUTHENTICATED, /* too many connections of the address are not bound yet */
    /* a TCP connection, and the system does not report the peer's address */
    REJECTED_NO_ADDRESS,
    REJECTED_COUNT
};

/* Why a connection was closed. */
enum ending_reason {
    CLOSED_BY_CLIENT,
    CLOSED_UPSTREAM, /* the client's lane was lost, or Redis no longer accepts the client's login */
    CLOSED_PROTOCOL,
    CLOSED_BUFFER, /* output-limit: the client did not read its replies */
    CLOSED_LIMIT,
    CLOSED_PROXY,     /* no valid PROXY header, or from an address that may not send one */
    CLOSED_IDLE,      /* idle-timeout */
    CLOSED_KICKED,    /* LIMIT KICK of an operator */
    CLOSED_REQUEST,   /* request-timeout */
    CLOSED_HANDSHAKE, /* handshake-timeout, or the handshake failed */
    CLOSED_DRAIN,     /* weir stops */
    CLOSED_MEMORY,    /* an allocation for the connection failed */
    CLOSED_COUNT
};

/* The effects on requests of an upstream outage or a change of master. */
enum outage_fate {
    FATE_WAITED, /* requests that began to wait for a connection */
    /* requests that got no lane in time: answered by an error, or closed with their connection */
    FATE_REFUSED,
    FATE_AGAIN, /* requests sent again, since Redis had not run them */
    FATE_LOST,  /* connections closed with requests in flight */
    FATE_COUNT
};

#define COUNTED_LISTENERS 17 /* the first 16, and one for all further listeners */
#define COUNTED_OWN 64       /* at least the rows of own.def */

struct listener_counts {
    _Atomic uint64_t accepted;
    _Atomic uint64_t accept_errors; /* accept failed for lack of descriptors */
    _Atomic uint64_t rejected[REJECTED_COUNT];
    /* without connections rejected before they were clients: rejection_is_early */
    _Atomic uint64_t closed[CLOSED_COUNT];
};

struct counts {
    _Atomic uint64_t commands[COMMAND_KINDS][RESULT_COUNT];
    struct listener_counts listeners[COUNTED_LISTENERS];
    /* weir's own commands, by row of own.def: answered, refused with an error */
    _Atomic uint64_t own[COUNTED_OWN][2];
    _Atomic uint64_t protocol_errors[ERR_COUNT];
    _Atomic uint64_t fates[FATE_COUNT];
    _Atomic uint64_t stalled; /* a gauge: clients that weir does not read, since memory is short */
    struct times times;
};

const char *counted_result_name(enum counted_result result); /* "forwarded" ... */
const char *rejection_name(enum rejection rejection);        /* "maxclients" ... */

/*
 * True if a connection rejected for that reason never was a client. The close of this connection is
 * not counted in `closed`.
 */
bool rejection_is_early(enum rejection rejection);

const char *ending_reason_name(enum ending_reason reason); /* "client" ... */
const char *protocol_error_name(enum err error);           /* "inline" ...; NULL: another error */
const char *outage_fate_name(enum outage_fate fate);       /* "waited" ... */

#endif
