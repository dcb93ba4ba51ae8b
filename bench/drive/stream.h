/* A connection's bytes, plain or in TLS. The driver treats both alike. */
#ifndef WEIR_BENCH_STREAM_H
#define WEIR_BENCH_STREAM_H

#include <stddef.h>
#include <sys/types.h>

struct stream {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
};

/* From now on streams_open uses TLS. Certificates are not verified. */
void streams_use_tls(void);

/*
 * Makes a stream of a connected socket, with the TLS handshake if TLS is used. Afterwards the
 * socket does not block.
 */
void stream_open(struct stream *stream, int fd);
void stream_close(struct stream *stream);

/* Like send and recv without waiting: -1 with errno EAGAIN if the call would block. */
ssize_t stream_send(struct stream *stream, const char *data, size_t n);
ssize_t stream_recv(struct stream *stream, char *at, size_t room);

#endif
