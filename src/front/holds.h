/*
 * Why a client keeps its private lane when no request needs it: what Redis remembers of the client there.
 */
#ifndef WEIR_FRONT_HOLDS_H
#define WEIR_FRONT_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client.h"

/* Bits of client.holds. */
enum {
    HOLD_WATCH = 1 << 0,
    HOLD_TRACKING = 1 << 1,
    HOLD_NO_EVICT = 1 << 2,
    HOLD_NO_TOUCH = 1 << 3,
    HOLD_PINNED = 1 << 4, /* for good: others may name it by its id, or weir does not know what it did */
    HOLD_RESET = 1 << 5,  /* it has been reset for its owner, who has not been told yet */
};

/* HOLD_*: Redis remembers that of the client on its lane from now on; or it does if `is_on`, and else no longer. */
void holds_add(struct client *client, uint8_t what);
void holds_set(struct client *client, uint8_t what, bool is_on);

/* The client keeps its own lane for good, and nobody has it afterwards. */
void holds_pin(struct client *client);

/* From here on replies on its lane cannot be told apart: it is pinned, and in no transaction that weir follows. */
void holds_be_raw(struct client *client);

/* The client has left its lane, and nothing that Redis remembers of it there binds it any more. */
void holds_end(struct client *client);

#endif
