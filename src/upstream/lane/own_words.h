/*
 * What weir itself says on connections to Redis: commands under names of its own, and nonces.
 *
 * The names are in a spelling that no client uses: so weir can tell such commands apart in what MONITOR shows, and keep
 * them from its clients. Redis takes a command's name in upper and lower case.
 */
#ifndef WEIR_UPSTREAM_OWN_WORDS_H
#define WEIR_UPSTREAM_OWN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/emit.h"
#include "resp/glimpse.h"

#define OWN_HELLO "hELLO"
#define OWN_ECHO "eCHO"
#define OWN_PING "pING"
#define OWN_RESET "rESET"
#define OWN_SET "sET"
#define OWN_CLIENT "cLIENT"
#define OWN_QUIT "qUIT"
#define OWN_READONLY "rEADONLY"
#define OWN_SELECT "sELECT"
#define OWN_AUTH "aUTH" /* to log a lane in; the login that a client asks for is sent as AUTH */

/* Do these bytes begin with a whole line of MONITOR's, "+time [database address] "word" ...", of such a command? */
bool own_words_in_line(struct slice bytes);

/* ---- nonces ---- */

/*
 * A nonce is a question that no ACL can deny and whose answer only Redis can give, and only now: it
 * carries 128 fresh random bits, which the server repeats.
 *
 * Redis and Valkey repeat the argument of an unknown command in its error, before they look at anybody's rights. That
 * leaves no trace in MONITOR, SLOWLOG, ACL LOG and commandstats; INFO counts it among the error replies. For servers
 * that do not there are two more forms. Which of them a node answers the control lane asks.
 */

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
