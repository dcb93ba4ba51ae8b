/*
 * The session of a lane, and its greeting: what weir sends on a lane before its first rider's
 * requests, and how the answers are judged. On a new connection that is the login, the database and
 * HELLO; between two owners of a used one RESET, the same, and a nonce.
 *
 * On a used connection nothing is believed but exactly what was asked for, in its order, with the nonce at its end,
 * since replies to the owner before may still come. On a new one nothing is pending when AUTH is sent: from 7.2 on
 * Redis leaves a failed AUTH without an answer otherwise. Pure but for memory.
 */
#ifndef WEIR_UPSTREAM_GREETING_H
#define WEIR_UPSTREAM_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp/glimpse.h"
#include "upstream/lane/own_words.h"
#include "upstream/login/login.h"
#include "upstream/node/node_role.h"

/*
 * The session of a lane: what makes two lanes equal. Requests sent on lanes of the same key get the same answers, and
 * on those that only differ in is_apart.
 */
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

enum greeting_kind {
    GREETING_FRESH, /* of a new connection */
    GREETING_OWNED, /* the same of a private one: HELLO is sent, too, for the connection's id */
    GREETING_AGAIN, /* of one that has had another owner */
    GREETING_NAMED, /* the same where its id is not known yet: HELLO is sent, too */
};

static inline bool greeting_is_again(enum greeting_kind kind)
{
    return kind == GREETING_AGAIN || kind == GREETING_NAMED;
}

/*
 * What makes a connection speak for all that Redis has been sent before: WAIT and WAITAOF tell of the last
 * command of their own connection that replicas or the append-only file were sent, so weir writes a key on it, before
 * the client's login. The key is empty and ends within a millisecond.
 */
struct greeting_cover {
    const char *key;           /* which; NULL: no cover is wanted */
    const struct login *login; /* weir's own login, for that moment; NULL: nobody's. Only where a login follows; needed
                              * until greeting_say has been called once */
};

/* Where a greeting stands: steps[0, at) have been answered, steps[at, said) have been sent. */
struct greeting {
    uint8_t steps[8]; /* enum step */
    uint8_t count;
    uint8_t said;
    uint8_t at;
    uint8_t kind; /* enum greeting_kind */
    bool is_selected;
    bool is_asking;  /* HELLO is said for what it tells, and may be refused */
    bool needs_auth; /* clients that have not logged in will hear NOAUTH from Redis */
    bool is_covered; /* its key has been written */
    struct greeting_cover cover;
};

/* The channel stays the caller's, and is there until the greeting is over. */
void greeting_init(struct greeting *greeting, const struct lane_key *key, enum greeting_kind kind,
                   const struct greeting_cover *cover);

/*
 * The requests that can go now: heap memory of *n bytes, which holds a password. NULL: out of memory. Only while all
 * that was said is answered, and the greeting is not over. `nonce` is asked at the end of a used connection's.
 */
char *greeting_say(struct greeting *greeting, const struct lane_key *key, const struct nonce *nonce, size_t *n);

/* HELLO at its end, if there is none: a client that has logged in is told the role. Before anything is said. */
void greeting_ask_role(struct greeting *greeting);

/* READONLY at its end: a replica of a cluster answers reads on this connection. Of a fresh one, before anything is said. */
void greeting_read_only(struct greeting *greeting);

enum greeting_verdict {
    GREETING_GOOD,
    GREETING_TELLS_ID,      /* good; it tells the connection's id, see greeting_id */
    GREETING_LOGIN_REFUSED, /* the password holds no more */
    GREETING_TURNED_AWAY,   /* too many connections, protected mode: no answer to anybody's request */
    GREETING_NO_RESET,      /* a used connection whose user may not RESET, or may not say what proves it clean */
    GREETING_UNCLEAN,       /* a used connection that answers anything but what it was asked */
    GREETING_NONSENSE,      /* a fresh connection whose answer is none of Redis' */
    GREETING_REFUSED,       /* what Redis says is what the client would hear from it */
};

/* Judge the next answer, a whole frame. */
enum greeting_verdict greeting_judge(struct greeting *greeting, const struct nonce *nonce,
                                     const struct glimpse *answer);

/* Is this what Redis says to a connection that it will not have, whatever it asks? */
bool greeting_turns_away(const struct glimpse *answer);

/* The id in HELLO's answer, in either protocol; 0: there is none. */
int64_t greeting_id(struct slice answer);

/* What the server says there that it is. */
enum node_role greeting_role(struct slice answer);

static inline bool greeting_is_over(const struct greeting *greeting)
{
    return greeting->at == greeting->count;
}

/* Has all that was said been answered, and is more to be said? */
static inline bool greeting_goes_on(const struct greeting *greeting)
{
    return greeting->at == greeting->said && !greeting_is_over(greeting);
}

#endif
