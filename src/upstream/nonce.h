/*
 * A question that no ACL can deny and whose answer only Redis can give, and only now: a command that no server has,
 * with 128 fresh random bits as its argument, which every server repeats in its error before it looks at anybody's
 * rights.
 *
 * It leaves no trace in MONITOR, SLOWLOG, ACL LOG and commandstats; INFO counts it among the error replies.
 */
#ifndef WEIR_UPSTREAM_NONCE_H
#define WEIR_UPSTREAM_NONCE_H

#include <stdbool.h>
#include <stddef.h>

#include "resp/emit.h"
#include "resp/glimpse.h"

#define NONCE_LEN 22          /* characters of 6 bits each; with what stands behind them they fit a glimpse's tail */
#define NONCE_ANSWER_MOST 128 /* bytes of its answer before the nonce ends, at most */
#define NONCE_REQUEST_ROOM (sizeof "WEIR.NONCE" + NONCE_LEN + 4 + 3 * EMIT_HEADER_MAX)

struct nonce {
    char text[NONCE_LEN];
};

/* Draw another. False: the system has no random numbers, and nothing would be safe. */
__attribute__((warn_unused_result)) bool nonce_draw(struct nonce *nonce);

/* The question, into NONCE_REQUEST_ROOM bytes. Returns its length. */
size_t nonce_request(const struct nonce *nonce, char *out);

/* Is this frame its answer? */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame);

#endif
