/*
 * TLS of one connection. tls_read and tls_write replace read() and writev() on the connection's
 * socket.
 *
 * OpenSSL works on memory only (BIOs of weir). Input is read from the socket in large pieces, into
 * a buffer that all connections of the thread share. Input is decrypted directly to the caller's
 * memory. Output is encrypted into a chain of pool chunks and written at once. Only output that the
 * socket does not take stays in the chain. An idle connection therefore owns no buffers. A
 * connection with a slow reader owns at most TLS_AHEAD bytes.
 *
 * The pool counts memory that OpenSSL allocates, by a measured value for each kind of connection.
 */
#ifndef WEIR_NET_TLS_H
#define WEIR_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/chain.h"
#include "base/slice.h"
#include "net/tls_context.h"

#define TLS_AHEAD 65536  /* most encrypted bytes that wait for the socket (chosen) */
#define TLS_RECORD 16384 /* most plain text in a TLS record (RFC 8446) */
/*
 * Bytes that OpenSSL holds from tls_new until the handshake ends. Measured, as READY_BYTES in
 * net/tls.c.
 */
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
    /*
     * bytes in `scratch` that were read from the socket and not decrypted yet; empty between calls
     */
    struct slice fed;
    struct chain kept;   /* rest of `fed` between calls */
    struct chain sealed; /* encrypted output that the socket has not taken yet */
    char *name;          /* heap: name in the peer's certificate; NULL: none */
    char *why;           /* heap: the error; NULL: no error */
    /* estimate of the bytes that OpenSSL holds for the connection, as counted in the pool */
    size_t counted;
    bool is_accepting; /* this side is the server in the handshake */
    bool is_ready;     /* the handshake has ended */
    /* the peer has sent close_notify, or a client's socket has ended without close_notify */
    bool is_ended;
    bool is_broken;
};

/*
 * `server_name`: the name that the peer's certificate must have, unless the context names one; NULL
 * for clients. Returns NULL if out of memory, or if OpenSSL refuses the name. `pool` and `scratch`
 * must outlive the result.
 */
__attribute__((warn_unused_result)) struct tls *tls_new(struct tls_context *context,
                                                        const char *server_name, struct pool *pool,
                                                        struct tls_scratch *scratch);
void tls_free(struct tls *tls); /* safe on NULL */

/*
 * Takes bytes of the handshake that were read from the socket before TLS began. False if out of
 * memory.
 */
__attribute__((warn_unused_result)) bool tls_feed(struct tls *tls, const char *data, size_t n);

/*
 * Continues the handshake. Returns 1 when the handshake has ended, 0 if more input is required.
 * Returns -1 with errno on failure (EPROTO: see tls->why).
 */
int tls_shake(struct tls *tls, int fd);

/*
 * Like read(). Returns the number of bytes decrypted to `at`, or 0 when the peer has half-closed.
 * Returns -1 with errno: EAGAIN, ECONNRESET, EPROTO (see tls->why), or an errno of read(). If the
 * socket ends without close_notify, the result is 0 for a client, and ECONNRESET for a server. A
 * result below `room` means that no more input is available for now, unless tls_has_news is true.
 */
ssize_t tls_read(struct tls *tls, int fd, char *at, size_t room);

/* True if tls_read would return input without an event of the socket. */
bool tls_has_news(const struct tls *tls);

/*
 * Like writev(). Returns the number of bytes taken. Returns 0 while earlier encrypted bytes wait in
 * tls->sealed.
 */
ssize_t tls_write(struct tls *tls, int fd, const struct slice *pieces, unsigned n);

/* True if encrypted output waits for the socket. */
static inline bool tls_is_full(const struct tls *tls)
{
    return tls->sealed.bytes > 0;
}

/* Sends close_notify, unless encrypted output already waits for the socket. */
void tls_end(struct tls *tls, int fd);

#endif
