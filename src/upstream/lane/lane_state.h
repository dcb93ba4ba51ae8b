/*
 * What a lane is doing, and how far its answers are believed. Only lane.c moves either; these are the legal steps.
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

#endif
