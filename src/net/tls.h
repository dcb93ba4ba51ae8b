/*
 * TLS of one connection: tls_read and tls_write take the place of read() and writev() on its socket.
 *
 * OpenSSL works on memory only (its own BIOs). Input is read from the socket in large pieces into a buffer that all
 * connections of the thread share, and decrypted to where the caller wants it; output is encrypted into a chain of pool
 * chunks and written at once, and stays there only as far as the socket does not take it. So an idle connection owns no
 * buffers, and one whose peer does not read owns at most TLS_AHEAD.
 *
 * What OpenSSL itself allocates is counted in the pool, as much as was measured for a connection of its kind.
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
#define TLS_RECORD 16384 /* the most plain text that a TLS record has */
/* Memory from tls_new until the handshake is over: measured as READY_BYTES in net/tls.c. */
#define TLS_SHAKING_BYTES 46000

/* Buffers that the connections of a thread share; used only during a call. */
struct tls_scratch {
    char in[131072];
    char record[TLS_RECORD];
};

struct tls {
    struct ssl_st *ssl;
    struct pool *pool;
    struct tls_scratch *scratch;
    struct slice fed;    /* in scratch: read from the socket, not decrypted yet; empty between calls */
    struct chain kept;   /* what is left of `fed` between calls */
    struct chain sealed; /* encrypted output that the socket has not taken yet */
    char *name;          /* heap: the name in the peer's certificate; NULL: none */
    char *why;           /* heap: what went wrong; NULL: nothing */
    size_t counted;      /* bytes that OpenSSL holds for it, an estimate, as noted in the pool */
    bool is_accepting;   /* the server's side of the handshake */
    bool is_ready;       /* the handshake is over */
    bool is_ended;       /* close_notify has come from the peer, or a client's socket has ended without it */
    bool is_broken;
};

/*
 * `server_name`: what the peer's certificate must bear where the context says nothing; NULL for clients' connections.
 * NULL: out of memory, or OpenSSL does not take the name. pool and scratch outlive it.
 */
__attribute__((warn_unused_result)) struct tls *tls_new(struct tls_context *context, const char *server_name,
                                                        struct pool *pool, struct tls_scratch *scratch);
void tls_free(struct tls *tls); /* NULL may be freed */

/* Hand in bytes that were read from the socket before TLS began. False: out of memory. */
__attribute__((warn_unused_result)) bool tls_feed(struct tls *tls, const char *data, size_t n);

/* Go on with the handshake. 1: over; 0: more input is needed; -1 with errno: failed (EPROTO: see tls->why). */
int tls_shake(struct tls *tls, int fd);

/*
 * As read(): how many bytes were decrypted to `at`; 0 when the peer has ended its side; -1 with errno: EAGAIN,
 * ECONNRESET, EPROTO (see tls->why), or what read() says. A socket that ends without close_notify is the end of a
 * client's side, and ECONNRESET of a server's. Less than `room` means that there is no more for now, unless
 * tls_has_news.
 */
ssize_t tls_read(struct tls *tls, int fd, char *at, size_t room);

/* Does it hold input that tls_read would return, though the socket has become readable by no event? */
bool tls_has_news(const struct tls *tls);

/* As writev(): how many bytes were taken. While encrypted ones of before wait in tls->sealed that is 0. */
ssize_t tls_write(struct tls *tls, int fd, const struct slice *pieces, unsigned n);

/* Does encrypted output wait for the socket? */
static inline bool tls_is_full(const struct tls *tls)
{
    return tls->sealed.bytes > 0;
}

/* Send close_notify, if the socket takes it. */
void tls_end(struct tls *tls, int fd);

#endif
