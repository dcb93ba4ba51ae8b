/*
 * TLS of one connection: what is read from and written to a socket in place of read() and writev().
 *
 * OpenSSL sees memory only. What comes is read from the socket in large pieces into a buffer that all connections of
 * the thread share, and decrypted to where the caller wants it; what goes out is encrypted into a chain of pool chunks,
 * written at once, and kept only as far as the socket does not take it. So an idle connection owns no buffers, and what
 * one that is not read owns is bounded by TLS_AHEAD.
 */
#ifndef WEIR_NET_TLS_H
#define WEIR_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/chain.h"
#include "base/slice.h"
#include "net/tls_context.h"

#define TLS_AHEAD 65536  /* encrypted bytes that may wait for the socket */
#define TLS_RECORD 16384 /* the longest there is */

/* What the connections of a thread share: nothing in it lasts longer than a call. */
struct tls_scratch {
    char in[131072];
    char record[TLS_RECORD];
};

struct tls {
    struct ssl_st *ssl;
    struct pool *pool;
    struct tls_scratch *scratch;
    struct slice fed;    /* in scratch: has come and is not decrypted yet; empty between calls */
    struct chain kept;   /* the same, between calls */
    struct chain sealed; /* encrypted, not yet written */
    char *name;          /* of the peer, from its certificate; NULL: none */
    char *why;           /* what went wrong; NULL: nothing has */
    bool is_accepting;
    bool is_ready; /* the handshake is over */
    bool is_ended; /* the peer has said that it sends no more */
    bool is_broken;
};

/* NULL: out of memory, or the name to check makes no sense. The pool and the scratch memory outlive it. */
__attribute__((warn_unused_result)) struct tls *tls_new(struct tls_context *context, struct pool *pool,
                                                        struct tls_scratch *scratch);
void tls_free(struct tls *tls); /* NULL may be freed */

/* What has been read from the socket before. False: out of memory. */
__attribute__((warn_unused_result)) bool tls_feed(struct tls *tls, const char *data, size_t n);

/* Go on with the handshake. 1: it is over; 0: more must come; -1 with errno: it has failed (EPROTO: tls->why). */
int tls_shake(struct tls *tls, int fd);

/*
 * As read(): how much was decrypted to `at`, 0 when the peer has ended its side; -1 with errno: EAGAIN, ECONNRESET also
 * when the connection ended without TLS' own end, EPROTO (tls->why), or what the system says. Less than `room` means
 * that the socket has no more for now, unless tls_has_news.
 */
ssize_t tls_read(struct tls *tls, int fd, char *at, size_t room);

/* Would tls_read return something that no event of the socket tells of? */
bool tls_has_news(const struct tls *tls);

/* As writev(): how much was taken. It may still be in tls->sealed; then nothing more is taken until that is written. */
ssize_t tls_write(struct tls *tls, int fd, const struct slice *pieces, unsigned n);

/* Does it wait for the socket to take more? */
static inline bool tls_is_full(const struct tls *tls)
{
    return tls->sealed.bytes > 0;
}

/* Say that nothing more will be sent, if the socket takes it. */
void tls_end(struct tls *tls, int fd);

#endif
