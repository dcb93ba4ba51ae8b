/*
 * The commands of weir's own on connections to Redis: command names in a special spelling, and
 * nonces.
 *
 * Clients do not normally use this mixed case. In the output of MONITOR weir recognises its own
 * commands by the spelling, and hides these commands from clients. Redis ignores the case of
 * command names.
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
#define OWN_AUTH "aUTH" /* for the login of a lane; a client's own login is sent as AUTH */

/*
 * True if the bytes begin with a whole line of MONITOR, "+time [database address] "word" ...",
 * about a command in weir's spelling.
 */
bool own_words_in_line(struct slice bytes);

/* ---- nonces ---- */

/*
 * A nonce is a request that only Redis can answer. No ACL can deny the first two forms. The request
 * carries 128 fresh random bits, which the server repeats.
 *
 * Redis and Valkey repeat the argument of an unknown command in the error, before permissions are
 * checked. The error leaves no trace in MONITOR, SLOWLOG, ACL LOG and commandstats. INFO counts the
 * error among the error replies. Two more forms are for servers that do not repeat the argument.
 * The control lane probes which form a node answers.
 */

/* characters of 6 bits each; the nonce and the text behind the nonce fit a glimpse's tail */
#define NONCE_LEN 22
#define NONCE_ANSWER_MOST 128 /* bytes of the answer up to the end of the nonce, at most */
#define NONCE_REQUEST_ROOM (sizeof "WEIR.NONCE" + NONCE_LEN + 8 + 4 * EMIT_HEADER_MAX)

/* The form of the request, the preferred one first. */
enum nonce_form {
    NONCE_UNKNOWN, /* the argument of a command that no server has */
    NONCE_HELLO,   /* an option that HELLO does not have: HELLO needs no rights, either */
    NONCE_ECHO,    /* the argument of ECHO; an ACL may deny ECHO */
    NONCE_NONE,    /* the server answers no form: nothing proves that a lane is clean */
};

struct nonce {
    char text[NONCE_LEN];
    uint8_t form; /* enum nonce_form, not NONE */
};

/* Draw a fresh nonce. False: the form is NONE, or the system has no random numbers. */
__attribute__((warn_unused_result)) bool nonce_draw(struct nonce *nonce, enum nonce_form form);

/* Write the request into NONCE_REQUEST_ROOM bytes. Returns the length of the request. */
size_t nonce_request(const struct nonce *nonce, char *out);

/* True if this frame is the nonce's answer. */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame);

#endif
