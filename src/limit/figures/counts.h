/*
 * Counters about the clients of one worker: written by the worker, read by any thread (base/count.h).
 *
 * Every number only grows, unless it says otherwise; the functions below give the words that metrics show.
 */
#ifndef WEIR_LIMIT_COUNTS_H
#define WEIR_LIMIT_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/count.h"
#include "base/err.h"
#include "limit/command/command.h"
#include "limit/figures/times.h"

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
