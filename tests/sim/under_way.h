/*
 * Which calls of a client's connection are under way at once: those that Redis has carried out and whose answers weir
 * has not begun to read. A limit on calls in flight is not to let more be than it says.
 *
 * Redis cannot tell clients apart on a lane that they share: whose call it is its first key says, if it is one of a
 * client's own.
 */
#ifndef WEIR_SIM_UNDER_WAY_H
#define WEIR_SIM_UNDER_WAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define UNDER_WAY_MAX 64

/* Of one lane; all zero: none. */
struct under_way {
    struct under_way_call {
        uint64_t owner;  /* the connection: its client and its life */
        uint64_t answer; /* where it begins among all bytes that Redis has said there */
    } calls[UNDER_WAY_MAX];
    unsigned first, n; /* a ring, the oldest first */
};

/*
 * Redis carries that out, and its answer begins at `answer`; weir has read the first `read` bytes. Returns how many
 * calls of the same connection are under way with it; 0: it is nobody's own, or does not count.
 */
unsigned under_way_begin(struct under_way *lane, const struct slice *argv, size_t argc, uint64_t answer, uint64_t read);

/* Whose key it is, as "k:3.1:5" is of connection 1 of client 3: the client's number and one above 32 bits. 0: nobody's own. */
uint64_t under_way_owner(struct slice key);

#endif
