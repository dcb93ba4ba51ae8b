/*
 * What a new upstream connection says before anything else, and how the answers are judged.
 */
#ifndef WEIR_UPSTREAM_GREETING_H
#define WEIR_UPSTREAM_GREETING_H

#include <stddef.h>
#include <stdint.h>

#include "resp/glimpse.h"
#include "upstream/lane.h"

/*
 * The requests that make the session of `key`, ending in a PING, which proves that the server lets us in. Returns
 * heap memory of *n bytes and, in *replies, how many frames answer it; NULL: out of memory.
 */
char *greeting_new(const struct lane_key *key, size_t *n, uint8_t *replies);

enum greeting_verdict {
    GREETING_GOOD,
    GREETING_NEEDS_AUTH, /* as good; clients that have not logged in will hear NOAUTH from Redis */
    GREETING_REFUSED,
};

/* Judge one answer; `left` frames are still to come after it (0: this answers the PING). */
enum greeting_verdict greeting_judge(const struct glimpse *answer, uint8_t left);

#endif
