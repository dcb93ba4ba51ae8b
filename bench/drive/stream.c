#include "stream.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static SSL_CTX *context; /* NULL: plain */

void streams_use_tls(void)
{
    signal(SIGPIPE, SIG_IGN);
    context = SSL_CTX_new(TLS_client_method());
    if (!context)
        errx(1, "OpenSSL cannot be used");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

void stream_open(struct stream *stream, int fd)
{
    *stream = (struct stream){.fd = fd};
    if (!context)
        return;
    stream->ssl = SSL_new(context);
    if (!stream->ssl || SSL_set_fd(stream->ssl, fd) != 1 || SSL_connect(stream->ssl) != 1)
        errx(1, "the TLS handshake failed");
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        err(1, "fcntl");
}

void stream_close(struct stream *stream)
{
    SSL_free(stream->ssl);
    close(stream->fd);
}

/* The result of an OpenSSL call that moved no bytes. */
static ssize_t nothing(struct stream *stream, int result)
{
    int why = SSL_get_error(stream->ssl, result);
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

ssize_t stream_send(struct stream *stream, const char *data, size_t n)
{
    if (!stream->ssl)
        return send(stream->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    size_t written;
    int result = SSL_write_ex(stream->ssl, data, n, &written);
    return result == 1 ? (ssize_t)written : nothing(stream, result);
}

ssize_t stream_recv(struct stream *stream, char *at, size_t room)
{
    if (!stream->ssl)
        return recv(stream->fd, at, room, MSG_DONTWAIT);
    size_t got;
    int result = SSL_read_ex(stream->ssl, at, room, &got);
    return result == 1 ? (ssize_t)got : nothing(stream, result);
}
