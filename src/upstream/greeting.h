/*
 * What a new upstream connection says before anything else, and how the answers are judged.
 */
#ifndef WEIR_UPSTREAM_GREETING_H
#define WEIR_UPSTREAM_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp/glimpse.h"
#include "upstream/lane.h"

/*
 * The requests that make the session of `key`, ending in a PING, which proves that the server lets us in; on a used
 * connection they begin with RESET. Fills *greeting; returns heap memory of *n bytes, or NULL: out of memory.
 */
char *greeting_new(const struct lane_key *key, bool is_used, struct greeting *greeting, size_t *n);

enum greeting_verdict {
    GREETING_GOOD,
    GREETING_NEEDS_AUTH,    /* good; clients that have not logged in will hear NOAUTH from Redis */
    GREETING_LOGIN_REFUSED, /* the password holds no more */
    GREETING_TURNED_AWAY,   /* too many connections, protected mode: no answer to anybody's request */
    GREETING_NO_RESET,      /* a used connection cannot become another's */
    GREETING_REFUSED,       /* what Redis says is what the client would hear from it */
};

/* Judge the next answer. */
enum greeting_verdict greeting_judge(struct greeting *greeting, const struct glimpse *answer);

/* Is this what Redis says to a connection that it will not have, whatever it asks? */
bool greeting_turns_away(const struct glimpse *answer);

static inline bool greeting_is_over(const struct greeting *greeting)
{
    return greeting->at == greeting->count;
}

#endif
