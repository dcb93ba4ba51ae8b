/*
 * The state of a client's connection and of its output. Pure. Only client_* functions of
 * front/client/client.h write this state.
 *
 *   shaking --> open --> draining --> closing --> closed
 *                 ^  \________________^   |
 *                 |_______________________| see client_return
 *
 * Every state may end in closed. Only client_return leads back from closing, and only while output
 * is OUTPUT_ENDED or OUTPUT_OVERDUE. weir takes the requests of an open client if and only if the
 * client's set of waits is empty.
 */
#ifndef WEIR_FRONT_CLIENT_STATE_H
#define WEIR_FRONT_CLIENT_STATE_H

#include <stdbool.h>
#include <stddef.h>

enum client_state {
    CLIENT_SHAKING, /* the PROXY header or the TLS handshake is not done */
    CLIENT_OPEN,    /* requests are taken */
    /* no request is taken; the client is closed when all replies are sent */
    CLIENT_DRAINING,
    /* no reply follows; the client is closed when its output is sent, or when it closes its side */
    CLIENT_CLOSING,
    CLIENT_CLOSED,
};

/*
 * How the client's output ends. The value changes only to a later one of this list, except in
 * client_return.
 */
enum client_output {
    OUTPUT_SENT, /* output is sent */
    /* output is thrown away; the client is closed once Redis has run the client's requests */
    OUTPUT_DROPPED,
    OUTPUT_ENDED, /* closing: weir stops, and has shut down its side after the last reply */
    /* closing: as OUTPUT_ENDED, and the client has kept its side open for a tick of the drain */
    OUTPUT_OVERDUE,
    OUTPUT_CUT, /* closing: a reply is lost, and no later reply may take its position */
};

/* True if a client may change from state `from` to another state `to`. */
bool client_state_may_follow(enum client_state from, enum client_state to);

/* Rows of front/waits.def, as bit numbers. */
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

/* Returns the text of a row in a line of the log, behind "waits for". */
const char *client_wait_text(enum client_wait_row row);

#define CLIENT_WAITS_ROOM 128

/*
 * Writes the names of a set, with commas between them; "" if the set is empty. Returns the length
 * without the NUL.
 */
size_t client_waits_print(unsigned waits, char out[CLIENT_WAITS_ROOM]);

#endif
