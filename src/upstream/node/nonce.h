/*
 * A question that no ACL can deny and whose answer only Redis can give, and only now: it carries 128 fresh random bits,
 * which the server repeats.
 *
 * Redis and Valkey repeat the argument of an unknown command in its error, before they look at anybody's rights. That
 * leaves no trace in MONITOR, SLOWLOG, ACL LOG and commandstats; INFO counts it among the error replies. For servers
 * that do not there are two more forms. Which of them a node answers the control lane asks.
 */
#ifndef WEIR_UPSTREAM_NONCE_H
#define WEIR_UPSTREAM_NONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp/emit.h"
#include "resp/glimpse.h"

#define NONCE_LEN 22          /* characters of 6 bits each; with what stands behind them they fit a glimpse's tail */
#define NONCE_ANSWER_MOST 128 /* bytes of its answer before the nonce ends, at most */
#define NONCE_REQUEST_ROOM (sizeof "WEIR.NONCE" + NONCE_LEN + 8 + 4 * EMIT_HEADER_MAX)

/* Which question it is, the preferred one first. */
enum nonce_form {
    NONCE_UNKNOWN, /* the argument of a command that no server has */
    NONCE_HELLO,   /* an option that HELLO does not have: needs no rights either */
    NONCE_ECHO,    /* ECHO: the user may be denied it */
    NONCE_NONE,    /* the server answers none of them: nothing proves that a lane is clean */
};

struct nonce {
    char text[NONCE_LEN];
    uint8_t form; /* enum nonce_form, not NONE */
};

/* Draw another. False: there is no form, or the system has no random numbers, and nothing would be safe. */
__attribute__((warn_unused_result)) bool nonce_draw(struct nonce *nonce, enum nonce_form form);

/* The question, into NONCE_REQUEST_ROOM bytes. Returns its length. */
size_t nonce_request(const struct nonce *nonce, char *out);

/* True if this frame is its answer. */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame);

#endif
