/*
 * What a lane is doing, how far its answers are believed, and how many lanes do what. Only lane.c moves the first two;
 * these are the legal steps.
 *
 *     CONNECTING -> GREETING <-> READY <-> RETIRED           RETIRED: shared lanes only
 *                                  |
 *                                  +-> PASSTHROUGH -> ENDING  private lanes only
 *
 *     from any of them to CLOSED, and from there to GONE
 *
 * A private lane goes back from READY to GREETING between two owners.
 */
#ifndef WEIR_UPSTREAM_LANE_STATE_H
#define WEIR_UPSTREAM_LANE_STATE_H

#include <stdbool.h>

#include "base/count.h"
#include "upstream/node/not_run.h"

enum lane_state {
    LANE_CONNECTING,
    LANE_GREETING,    /* connected; what is read answers the greeting (greeting.h) */
    LANE_READY,       /* greeted; replies are counted, frame by frame */
    LANE_RETIRED,     /* as READY, and takes no new calls: the calls on it take their time (shared.h) */
    LANE_PASSTHROUGH, /* replies cannot be counted: bytes pass to the owner as they come */
    LANE_ENDING,      /* as PASSTHROUGH, and all has been sent: it ends behind the answer to a nonce (raw_end.h) */
    LANE_CLOSED,      /* the link is being closed */
    LANE_GONE,        /* the link is closed: the memory waits for leases */
    LANE_STATES
};

/*
 * What may be concluded from answers on a private lane. A command that may forge replies makes it untrusted; the answer
 * to a nonce clears all that was sent before the nonce.
 */
enum lane_trust {
    TRUST_CLEAN,     /* the present owner has sent nothing yet */
    TRUST_RETURNED,  /* as CLEAN, and UNTRUSTED when its owner, which has come back to it, gave it back */
    TRUST_USED,      /* something has been sent, and nothing that may forge replies */
    TRUST_UNTRUSTED, /* something may have forged replies */
    TRUST_ASKED,     /* a nonce is in flight, and nothing that may forge replies is behind it */
    TRUST_UNSETTLED, /* a nonce is in flight, and something that may forge replies is behind it */
    LANE_TRUSTS
};

/* True if a lane may go from one to the other. */
bool lane_state_may_become(enum lane_state from, enum lane_state to);
bool lane_trust_may_become(enum lane_trust from, enum lane_trust to);

/* ---- counts ---- */

/* Each lane is in one list, which says what it is doing. */
enum lane_list {
    LIST_NONE,    /* closed, or not opened yet */
    LIST_OPENING, /* connecting or greeting, of any role */
    LIST_SHARED,  /* takes the calls of all clients of its session */
    LIST_RETIRED, /* shared, and takes no new calls, because those on it take long */
    LIST_SPARE,   /* shared, without calls, for when the one in use is retired */
    LIST_PRIVATE, /* has an owner */
    LIST_IDLE,    /* private, kept for its last owner or the next */
    LIST_SCRIPT,  /* weir's, for the scripts of LIMIT */
    LIST_DOOR,    /* weir's, for logins */
    LIST_COUNT
};

/* Why a lane has failed. */
enum lane_loss {
    LOSS_CONNECT,  /* the connection could not be made, or Redis turned it away */
    LOSS_TIMEOUT,  /* an answer did not come in time */
    LOSS_PROTOCOL, /* what came may not come there */
    LOSS_CLOSED,   /* Redis has closed it when it was ready */
    LOSS_AUTH,     /* Redis has refused its login, or what else its greeting asks for */
    LOSS_SYSTEM,   /* there was no descriptor or no memory to open one */
    LOSS_UNCLEAN,  /* between two owners it answered otherwise than it must */
    LOSS_COUNT
};

/* What a node of a cluster has said instead of running a command. */
enum lane_redirect {
    REDIRECT_MOVED,
    REDIRECT_ASK,
    REDIRECT_TRYAGAIN,
    REDIRECT_CLUSTERDOWN,
    REDIRECT_GIVEN_UP, /* and the client, or limit-when-down, was told: after too many of these, or too long */
    REDIRECT_COUNT
};

/*
 * How many lanes a worker has to one node, and what became of earlier ones. Counted by the worker's thread, read by any
 * (base/count.h).
 */
struct lane_counts {
    _Atomic uint64_t lists[LIST_COUNT]; /* lanes there now */
    _Atomic uint64_t in_flight;         /* requests sent and not answered, now */
    _Atomic uint64_t blocking;          /* of them those that may wait in Redis */
    _Atomic uint64_t subscribed;        /* connections with subscriptions, now */
    _Atomic uint64_t requests;          /* sent, weir's own among them */
    _Atomic uint64_t opened;            /* connections begun */
    _Atomic uint64_t lost[LOSS_COUNT];
    _Atomic uint64_t redirects[REDIRECT_COUNT];
    _Atomic uint64_t error_replies;  /* errors that answered clients' requests */
    _Atomic uint64_t pushes_dropped; /* pushes that nobody on the lane had asked for */
    _Atomic uint64_t is_down;        /* 1: the node is away, as far as this worker knows */
};

/* "opening" ..., "connect" ..., "moved" ... */
const char *lane_list_name(enum lane_list in);
const char *lane_loss_name(enum lane_loss loss);
const char *lane_redirect_name(enum lane_redirect redirect);

/* A call of a client comes back for that reason. */
void lane_counts_note_refusal(struct lane_counts *counts, enum not_run row);

#endif
