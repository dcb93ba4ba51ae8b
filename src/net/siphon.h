/*
 * A pipe through which bytes go from one socket to another without being copied to weir's memory and back (splice(2)).
 *
 * It is empty between two calls of siphon_pass: what the second socket does not take is to be fetched at once. So one
 * does for all links of a loop, and belongs to its thread.
 */
#ifndef WEIR_NET_SIPHON_H
#define WEIR_NET_SIPHON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SIPHON_MOST 262144 /* bytes in it at a time */

struct siphon {
    int ends[2]; /* of the pipe, as pipe(2) gives them; -1: there is none, or it is of no use */
};

/* Without a descriptor for it there is none, and bytes are read and written. */
void siphon_init(struct siphon *siphon);
void siphon_fini(struct siphon *siphon);

static inline bool siphon_works(const struct siphon *siphon)
{
    return siphon->ends[0] >= 0;
}

struct siphoned {
    ssize_t taken; /* bytes out of the first socket; 0: at its end; -1: none, see errno */
    size_t left;   /* of them those that the second has not taken: siphon_fetch */
    int error;     /* errno of the second socket; 0: it is well, or full */
};

/* At most `most` bytes. EINVAL: sockets like these cannot do that. */
struct siphoned siphon_pass(const struct siphon *siphon, int from, int to, size_t most);

/* What is left. False: it cannot be had, and is lost; the siphon is of no use any more. */
__attribute__((warn_unused_result)) bool siphon_fetch(struct siphon *siphon, char *at, size_t n);

#endif
