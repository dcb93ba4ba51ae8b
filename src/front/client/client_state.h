/*
 * What a client's connection is doing, and what becomes of its output. Pure; client_* functions of
 * front/client/client.h are the only writers.
 *
 *   shaking --> open --> draining --> closing --> closed
 *                 ^  \________________^   |
 *                 |________________________| only from OUTPUT_ENDED, see client_return
 *
 * Every state may end in closed. While a client is open its requests are taken if and only if it waits for nothing:
 * its set of waits is empty.
 */
#ifndef WEIR_FRONT_CLIENT_STATE_H
#define WEIR_FRONT_CLIENT_STATE_H

#include <stdbool.h>
#include <stddef.h>

enum client_state {
    CLIENT_SHAKING,  /* its PROXY header or its TLS handshake is not done */
    CLIENT_OPEN,     /* its requests are taken */
    CLIENT_DRAINING, /* no request is taken; closed when all is answered and sent */
    CLIENT_CLOSING,  /* no reply is to come either; closed when its output is sent, or when it closes its side */
    CLIENT_CLOSED,
};

/* How the client's output ends. A later value replaces an earlier one, never the reverse but by client_return. */
enum client_output {
    OUTPUT_SENT,    /* it does not */
    OUTPUT_DROPPED, /* nothing more is sent: the client is closed once Redis has carried out what it asked */
    OUTPUT_ENDED, /* closing: weir stops, and has ended its side behind the last reply; the client may close its own */
    OUTPUT_OVERDUE, /* closing: as OUTPUT_ENDED, and the client has kept its side open for one tick of the drain */
    OUTPUT_CUT,     /* closing: a reply will not come, and none behind it may stand in its place */
};

/* True if a client may go from one state to the other; to stay is no step. */
bool client_state_may_follow(enum client_state from, enum client_state to);

/* Rows of front/waits.def, as bits of a set. */
enum client_wait_row {
#define WAIT(reason, name, text) WAIT_ROW_##reason,
#include "front/waits.def"
#undef WAIT
    WAIT_ROWS
};
enum client_wait {
#define WAIT(reason, name, text) WAIT_##reason = 1 << WAIT_ROW_##reason,
#include "front/waits.def"
#undef WAIT
};

/* The name of a row, one word; and what stands in a log behind "waits for". */
const char *client_wait_name(enum client_wait_row row);
const char *client_wait_text(enum client_wait_row row);

#define CLIENT_WAITS_ROOM 128 /* for client_waits_print */

/* The names of a set, with commas between them; "" if it is empty. Returns how many bytes, without the NUL. */
size_t client_waits_print(unsigned waits, char out[CLIENT_WAITS_ROOM]);

#endif
