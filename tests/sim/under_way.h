/*
 * The calls of a client's connection that are in flight at once: executed by Redis, with an answer
 * that weir has not begun to read. An inflight limit must not admit more calls than its number.
 *
 * On a shared lane the first key tells which client a call belongs to, if it is a client's own key.
 */
#ifndef WEIR_SIM_UNDER_WAY_H
#define WEIR_SIM_UNDER_WAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define UNDER_WAY_MAX 64

/* The calls of one lane; all zero: none. */
struct under_way {
    struct under_way_call {
        uint64_t owner;  /* the connection: client and life */
        uint64_t answer; /* byte offset of the answer in the lane's output */
    } calls[UNDER_WAY_MAX];
    unsigned first, n; /* a ring, the oldest first */
};

/*
 * Redis executes a command, with its answer at offset `answer`; weir has read `read` bytes. Returns
 * how many calls of the same connection are in flight. 0: no client's own key, an exempt command,
 * or too many calls to count.
 */
unsigned under_way_begin(struct under_way *lane, const struct slice *argv, size_t argc,
                         uint64_t answer, uint64_t read);

/*
 * The owner of a key: "k:3.1:5" belongs to connection 1 of client 3. Returns the client's number
 * plus one, shifted by 32 bits, and the connection. 0: no client's own key.
 */
uint64_t under_way_owner(struct slice key);

#endif
