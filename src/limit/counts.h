/*
 * What the clients of one worker have done: counted by the worker, read by anybody (base/count.h).
 *
 * Every number only grows, but for those that say otherwise; the rows of each table have a word that metrics show.
 */
#ifndef WEIR_LIMIT_COUNTS_H
#define WEIR_LIMIT_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/count.h"
#include "base/err.h"
#include "limit/command.h"
#include "limit/times.h"

/* What has become of a command. */
enum counted_result {
    RESULT_FORWARDED,
    RESULT_THROTTLED, /* refused by a limit */
    RESULT_DELAYED,   /* forwarded after a limit had made it wait */
    RESULT_SHADOW,    /* forwarded, though a limit that is only counted would have refused it */
    RESULT_LOCAL,     /* answered by weir */
    RESULT_ERROR,     /* answered with an error that is no limit's: upstream away, unknown command ... */
    RESULT_COUNT
};

/* Why a newcomer was turned away. */
enum rejection { REJECTED_MAX_CLIENTS, REJECTED_RATE, REJECTED_MEMORY, REJECTED_TLS, REJECTED_COUNT };

/* Why a client is gone. */
enum ending_reason {
    CLOSED_BY_CLIENT,
    CLOSED_UPSTREAM, /* its lane was lost, or its login is not accepted any more */
    CLOSED_PROTOCOL,
    CLOSED_BUFFER, /* it did not read */
    CLOSED_LIMIT,
    CLOSED_PROXY,     /* no good header of the PROXY protocol, or from somebody who may not send one */
    CLOSED_IDLE,      /* idle-timeout, */
    CLOSED_REQUEST,   /* request-timeout, */
    CLOSED_HANDSHAKE, /* handshake-timeout, or it failed */
    CLOSED_DRAIN,     /* weir stops */
    CLOSED_MEMORY,    /* the system had none for it */
    CLOSED_COUNT
};

#define COUNTED_LISTENERS 17 /* 16, and all others together */
#define COUNTED_OWN 64       /* rows of own.def */

struct listener_counts {
    _Atomic uint64_t accepted;
    _Atomic uint64_t accept_errors; /* attempts that the system refused a descriptor */
    _Atomic uint64_t rejected[REJECTED_COUNT];
    _Atomic uint64_t closed[CLOSED_COUNT]; /* of those not rejected by REJECTED_MAX_CLIENTS, REJECTED_MEMORY */
};

struct counts {
    _Atomic uint64_t commands[COMMAND_KINDS][RESULT_COUNT];
    struct listener_counts listeners[COUNTED_LISTENERS];
    _Atomic uint64_t own[COUNTED_OWN][2]; /* by row of own.def: done, refused with an error */
    _Atomic uint64_t protocol_errors[ERR_COUNT];
    _Atomic uint64_t stalled; /* clients that are not read from now, for want of memory */
    struct times times;
};

/* "forwarded" ...; "maxclients" ...; "client" ...; "inline" ..., NULL for what is no protocol error. */
const char *counted_result_name(enum counted_result result);
const char *rejection_name(enum rejection rejection);
const char *ending_reason_name(enum ending_reason reason);
const char *protocol_error_name(enum err error);

#endif
