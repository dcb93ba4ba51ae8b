/*
 * A pipe for splice(2): bytes pass from one socket to another without a copy to weir's memory and
 * back.
 *
 * Invariant: the pipe is empty between two calls of siphon_pass. Bytes that the second socket does
 * not take are fetched at once. One pipe thus serves all links of a loop. The loop's thread.
 */
#ifndef WEIR_NET_SIPHON_H
#define WEIR_NET_SIPHON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SIPHON_MOST 262144 /* most bytes in the pipe at a time (chosen) */

struct siphon {
    int ends[2]; /* of the pipe, as pipe(2) returns them; -1: no usable pipe */
};

/* Without free descriptors there is no pipe; bytes are then read and written. */
void siphon_init(struct siphon *siphon);
void siphon_fini(struct siphon *siphon);

static inline bool siphon_works(const struct siphon *siphon)
{
    return siphon->ends[0] >= 0;
}

struct siphoned {
    ssize_t taken; /* bytes taken from the first socket; 0: end of input; -1: error, see errno */
    /* bytes of these that the second socket has not taken; to be read by siphon_fetch */
    size_t left;
    int error; /* errno of the second socket; 0: no error, or the socket is full */
};

/* Splices at most `most` bytes. errno EINVAL: the sockets do not support splice. */
struct siphoned siphon_pass(const struct siphon *siphon, int from, int to, size_t most);

/*
 * Reads the bytes left in the pipe. False if the bytes are lost; the pipe is then not usable any
 * more.
 */
__attribute__((warn_unused_result)) bool siphon_fetch(struct siphon *siphon, char *at, size_t n);

#endif
