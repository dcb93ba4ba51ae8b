/*
 * A connection's bytes, plain or in TLS, so that the driver does the same for both.
 */
#ifndef WEIR_BENCH_STREAM_H
#define WEIR_BENCH_STREAM_H

#include <stddef.h>
#include <sys/types.h>

struct stream {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
};

/* From now on streams that are opened speak TLS. Whoever answers is believed. */
void streams_use_tls(void);

/* Over a socket that is connected; with TLS the handshake is done, and the socket does not block any more. */
void stream_open(struct stream *stream, int fd);
void stream_close(struct stream *stream);

/* As send and recv, without waiting: -1 with errno EAGAIN when that would be needed. */
ssize_t stream_send(struct stream *stream, const char *data, size_t n);
ssize_t stream_recv(struct stream *stream, char *at, size_t room);

#endif
