/*
 * The session of a lane: what makes two lanes equal. Requests sent on lanes of the same key get the same answers, and
 * on those that only differ in is_apart.
 */
#ifndef WEIR_UPSTREAM_LANE_KEY_H
#define WEIR_UPSTREAM_LANE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/login/login.h"

struct lane_key {
    uint8_t protocol; /* 2 or 3; 0: not known, and equal to nothing that a client asks for */
    uint32_t database;
    struct login *login; /* of this user, by whatever password; NULL: the connection does not log in, and is whoever
                          * Redis takes it for ... */
    uint32_t epoch;      /* ... when it is opened in this epoch of its node (node.h); counts only without a login */
    bool is_apart;       /* it is for what must not hold others up, see shared_get_apart */
};

static inline bool lane_key_eq(const struct lane_key *a, const struct lane_key *b)
{
    return a->protocol == b->protocol && a->database == b->database && a->is_apart == b->is_apart &&
           login_same_user(a->login, b->login) && (a->login != NULL || a->epoch == b->epoch);
}

#endif
