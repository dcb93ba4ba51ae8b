/*
 * A pipe for splice(2): bytes pass from one socket to another without a copy to weir's memory and
 * back.
 *
 * Invariant: the pipe is empty between two calls of splice_pipe_pass. Bytes that the second socket
 * does not take are fetched at once. One pipe thus serves all links of a loop. The loop's thread.
 */
#ifndef WEIR_NET_SPLICE_PIPE_H
#define WEIR_NET_SPLICE_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPLICE_PIPE_MOST 262144 /* most bytes in the pipe at a time (chosen) */

struct splice_pipe {
    int ends[2]; /* of the pipe, as pipe(2) returns them; -1: no usable pipe */
};

/* Without free descriptors there is no pipe; bytes are then read and written. */
void splice_pipe_init(struct splice_pipe *splice_pipe);
void splice_pipe_fini(struct splice_pipe *splice_pipe);

static inline bool splice_pipe_works(const struct splice_pipe *splice_pipe)
{
    return splice_pipe->ends[0] >= 0;
}

struct spliced {
    ssize_t taken; /* bytes taken from the first socket; 0: end of input; -1: error, see errno */
    /* bytes of these that the second socket has not taken; to be read by splice_pipe_fetch */
    size_t left;
    int error; /* errno of the second socket; 0: no error, or the socket is full */
};

/* Splices at most `most` bytes. errno EINVAL: the sockets do not support splice. */
struct spliced splice_pipe_pass(const struct splice_pipe *splice_pipe, int from, int to, size_t most);

/*
 * Reads the bytes left in the pipe. False if the bytes are lost; the pipe is then not usable any
 * more.
 */
__attribute__((warn_unused_result)) bool splice_pipe_fetch(struct splice_pipe *splice_pipe, char *at, size_t n);

#endif
