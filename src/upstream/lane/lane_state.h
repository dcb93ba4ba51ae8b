/*
 * The states of a lane, the trust in its answers, and counts of lanes. Only lane.c changes state
 * and trust. The legal steps are:
 *
 *     CONNECTING -> GREETING <-> READY <-> RETIRED           RETIRED: shared lanes only
 *                                  |
 *                                  +-> PASSTHROUGH -> ENDING  private lanes only
 *
 *     from each of these states to CLOSED, and from CLOSED to GONE
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
    LANE_GREETING, /* connected; all replies answer the greeting (greeting.h) */
    LANE_READY,    /* greeted; replies are counted, frame by frame */
    /* as READY, but takes no new calls: the calls in flight are slow (shared.h) */
    LANE_RETIRED,
    LANE_PASSTHROUGH, /* replies cannot be counted: bytes pass to the owner as they arrive */
    /* as PASSTHROUGH, and all is sent: closes behind the answer to a nonce (passthrough_end.h) */
    LANE_ENDING,
    LANE_CLOSED, /* the link is being closed */
    LANE_GONE,   /* the link is closed: the memory stays until the last lease is dropped */
    LANE_STATES
};

/*
 * How far answers on a private lane are trusted. A command that may forge replies makes the lane
 * untrusted. The answer to a nonce clears all commands sent before the nonce.
 */
enum lane_trust {
    TRUST_CLEAN, /* the present owner has sent nothing yet */
    /*
     * as CLEAN, but the lane was UNTRUSTED when its owner gave the lane back, and the owner has
     * returned
     */
    TRUST_RETURNED,
    TRUST_USED,      /* something has been sent, and nothing that may forge replies */
    TRUST_UNTRUSTED, /* something may have forged replies */
    TRUST_ASKED,     /* a nonce is in flight, and nothing behind the nonce may forge replies */
    TRUST_UNSETTLED, /* a nonce is in flight, and something behind the nonce may forge replies */
    LANE_TRUSTS
};

/* True if the step is legal. */
bool lane_state_may_become(enum lane_state from, enum lane_state to);
bool lane_trust_may_become(enum lane_trust from, enum lane_trust to);

/* ---- counts ---- */

/* Each lane is in one list, which says what the lane is doing. */
enum lane_list {
    LIST_NONE,      /* closed, or not opened yet */
    LIST_OPENING,   /* connecting or greeting, of any role */
    LIST_SHARED,    /* takes the calls of all clients of its session */
    LIST_RETIRED,   /* shared, and takes no new calls, because its calls take long */
    LIST_SPARE,     /* shared, without calls, to be used when the lane in use is retired */
    LIST_PRIVATE,   /* has an owner */
    LIST_IDLE,      /* private, kept for its last owner or the next */
    LIST_SCRIPT,    /* weir's own, for the scripts of LIMIT */
    LIST_AUTH_LANE, /* weir's own, for logins */
    LIST_COUNT
};

/* Why a lane has failed. */
enum lane_loss {
    LOSS_CONNECT,  /* the connection could not be made, or Redis refused it */
    LOSS_TIMEOUT,  /* an answer did not arrive in time */
    LOSS_PROTOCOL, /* a frame arrived that the lane does not allow */
    LOSS_CLOSED,   /* Redis closed a ready lane */
    LOSS_AUTH,     /* Redis refused the login, or another part of the greeting */
    LOSS_SYSTEM,   /* no descriptor or no memory to open a lane */
    LOSS_UNCLEAN,  /* between two owners the lane gave a wrong answer */
    LOSS_COUNT
};

/* The replies of a cluster node that does not run a command. */
enum lane_redirect {
    REDIRECT_MOVED,
    REDIRECT_ASK,
    REDIRECT_TRYAGAIN,
    REDIRECT_CLUSTERDOWN,
    /*
     * redirected too often or for too long: the client gets the error, or limit-when-down applies
     */
    REDIRECT_GIVEN_UP,
    REDIRECT_COUNT
};

/*
 * How many lanes a worker has to one node, and how earlier lanes ended. Written by the worker's
 * thread, read by any thread (base/count.h).
 */
struct lane_counts {
    _Atomic uint64_t lists[LIST_COUNT]; /* lanes in each list now */
    _Atomic uint64_t in_flight;         /* requests sent and not answered, now */
    _Atomic uint64_t blocking;          /* calls in flight that may block in Redis */
    _Atomic uint64_t subscribed;        /* connections with subscriptions, now */
    _Atomic uint64_t requests;          /* requests sent, including weir's own */
    _Atomic uint64_t opened;            /* connections begun */
    _Atomic uint64_t lost[LOSS_COUNT];
    _Atomic uint64_t redirects[REDIRECT_COUNT];
    _Atomic uint64_t error_replies;  /* errors that answered clients' requests */
    _Atomic uint64_t pushes_dropped; /* pushes that no client on the lane had asked for */
    _Atomic uint64_t is_down;        /* 1: the node is away, as far as this worker knows */
};

/* Return the name of a value: "opening" ..., "connect" ..., "moved" ... */
const char *lane_list_name(enum lane_list in);
const char *lane_loss_name(enum lane_loss loss);
const char *lane_redirect_name(enum lane_redirect redirect);

/* Count a call that returns to its client for this row of not_run.def. */
void lane_counts_note_refusal(struct lane_counts *counts, enum not_run row);

#endif
