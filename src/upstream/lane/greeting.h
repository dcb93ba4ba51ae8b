/*
 * The session of a lane, and the greeting of a lane: the requests that weir sends before the first
 * calls, and the verdicts on the answers. On a new connection the greeting is the login, the
 * database and HELLO. Between two owners the greeting is RESET, the login, the database, HELLO, and
 * a nonce.
 *
 * On a used connection replies to the last owner may still arrive. Only the exact answers, in
 * order, with the nonce at the end, are believed. On a new connection no reply is pending when AUTH
 * is sent. With a pending reply, Redis from 7.2 on sends no answer to a failed AUTH. Pure, except
 * that memory is allocated.
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
 * The session of a lane. Requests get the same answers on lanes with equal keys, and on lanes with
 * keys that differ only in is_apart.
 */
struct lane_key {
    uint8_t protocol; /* 2 or 3; 0: unknown, and equal to no client's protocol */
    uint32_t database;
    /*
     * The user, with any of its passwords. NULL: the connection does not log in, and Redis decides
     * what the connection may do.
     */
    struct login *login;
    /*
     * without a login: the node's auth generation (node.h) when the lane was opened; else ignored
     */
    uint32_t auth_generation;
    bool is_apart; /* for reads that must not delay other clients, see shared_get_apart */
};

static inline bool lane_key_eq(const struct lane_key *a, const struct lane_key *b)
{
    return a->protocol == b->protocol && a->database == b->database && a->is_apart == b->is_apart &&
           login_same_user(a->login, b->login) &&
           (a->login != NULL || a->auth_generation == b->auth_generation);
}

enum greeting_kind {
    GREETING_FRESH, /* for a new connection */
    /* as FRESH, for a private lane: HELLO is sent, too, to get the connection's id */
    GREETING_OWNED,
    GREETING_AGAIN, /* for a connection that has had another owner */
    GREETING_NAMED, /* as AGAIN, with HELLO, as the connection's id is unknown */
};

static inline bool greeting_is_again(enum greeting_kind kind)
{
    return kind == GREETING_AGAIN || kind == GREETING_NAMED;
}

/*
 * Makes WAIT on a connection cover everything that Redis was sent before the connection was ready.
 * WAIT and WAITAOF report on the last command of their own connection that went to replicas or the
 * append-only file. weir writes a key on the connection, before the client's login. The key is
 * empty and expires within a millisecond.
 */
struct greeting_cover {
    const char *key; /* NULL: no cover */
    /*
     * weir's own login, for the write; NULL: none. Used only if a client's login follows. Must stay
     * valid until the first greeting_say.
     */
    const struct login *login;
};

/* The progress of a greeting: steps[0, at) have been answered, steps[at, said) have been sent. */
struct greeting {
    uint8_t steps[8]; /* enum step */
    uint8_t count;
    uint8_t said;
    uint8_t at;
    uint8_t kind; /* enum greeting_kind */
    bool is_selected;
    bool is_asking;  /* HELLO only asks for information, and may be refused */
    bool needs_auth; /* Redis answers NOAUTH to clients that have not logged in */
    bool is_covered; /* the cover's key has been written */
    struct greeting_cover cover;
};

/* `cover` is copied. The cover's key must stay valid until the greeting is over. */
void greeting_init(struct greeting *greeting, const struct lane_key *key, enum greeting_kind kind,
                   const struct greeting_cover *cover);

/*
 * Returns the requests that can be sent now, in heap memory of *n bytes. The memory holds a
 * password. NULL: out of memory. Called only while no answer is pending, and the greeting is not
 * over. `nonce` ends the greeting of a used connection.
 */
char *greeting_say(struct greeting *greeting, const struct lane_key *key, const struct nonce *nonce,
                   size_t *n);

/*
 * Add HELLO at the end of a fresh greeting without HELLO: after the login the answer holds the
 * role. Called before the first greeting_say.
 */
void greeting_ask_role(struct greeting *greeting);

/*
 * Add READONLY at the end: a cluster replica then answers reads on this connection. Called only for
 * a fresh connection, before the first greeting_say.
 */
void greeting_read_only(struct greeting *greeting);

enum greeting_verdict {
    GREETING_GOOD,
    GREETING_TELLS_ID,      /* good; the answer holds the connection's id, see greeting_id */
    GREETING_LOGIN_REFUSED, /* the password is no longer valid */
    /* too many connections, or protected mode: Redis answers no request of this connection */
    GREETING_TURNED_AWAY,
    /* the user of a used connection may not RESET, or may not send the nonce */
    GREETING_NO_RESET,
    GREETING_UNCLEAN,  /* a used connection with a wrong answer */
    GREETING_NONSENSE, /* a fresh connection with an answer that Redis does not give */
    GREETING_REFUSED,  /* Redis would give the client the same error */
};

/* Judge the next answer, a whole frame. */
enum greeting_verdict greeting_judge(struct greeting *greeting, const struct nonce *nonce,
                                     const struct glimpse *answer);

/* True if Redis rejects the connection, whatever is asked. */
bool greeting_turns_away(const struct glimpse *answer);

/* The id in the answer to HELLO, in either protocol; 0: none. */
int64_t greeting_id(struct slice answer);

/* The role of the server in the answer to HELLO. */
enum node_role greeting_role(struct slice answer);

static inline bool greeting_is_over(const struct greeting *greeting)
{
    return greeting->at == greeting->count;
}

/* True if all steps sent have been answered, and more steps are left. */
static inline bool greeting_goes_on(const struct greeting *greeting)
{
    return greeting->at == greeting->said && !greeting_is_over(greeting);
}

#endif
