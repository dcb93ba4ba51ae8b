/*
 * What TLS connections have in common: certificate and key, trusted CAs, protocols and ciphers (an SSL_CTX).
 *
 * Made from files, then immutable; reference-counted, so that connections keep theirs when a reload replaces it. Any
 * thread.
 */
#ifndef WEIR_NET_TLS_CONTEXT_H
#define WEIR_NET_TLS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

/* TLS_ACCEPT: of listeners. TLS_CONNECT: of connections to the upstream. */
enum tls_side { TLS_ACCEPT, TLS_CONNECT };

/* What a listener asks of its clients. */
enum tls_auth { TLS_AUTH_NO, TLS_AUTH_OPTIONAL, TLS_AUTH_YES };

/* The settings that a message can be about. */
enum tls_setting { TLS_CERT, TLS_KEY, TLS_CA, TLS_CIPHERS, TLS_CIPHERSUITES, TLS_SERVER_NAME, TLS_SETTINGS };

struct tls_settings {
    char *texts[TLS_SETTINGS]; /* heap, NULL: not given; paths of PEM files, OpenSSL's words, a host name or address */
    bool no_tls12, no_tls13;
    enum tls_auth auth; /* TLS_ACCEPT */
    bool is_unverified; /* TLS_CONNECT: the upstream's certificate is not verified */
};

void tls_settings_fini(struct tls_settings *settings);

struct tls_context;

/*
 * Read the files. `say` is called once for each error, and for each warning (a key that others can read, a certificate
 * that has expired); `what` is good during the call. NULL when there was an error.
 */
__attribute__((warn_unused_result)) struct tls_context *tls_context_new(
    const struct tls_settings *settings, enum tls_side side,
    void (*say)(void *arg, bool is_error, enum tls_setting which, const char *what), void *arg);

struct tls_context *tls_context_get(
    struct tls_context *context); /* one more reference; NULL is allowed, here and in put */
void tls_context_put(struct tls_context *context);

/* "OpenSSL 3.0.15 ...": of the library that is running. */
const char *tls_version(void);

/* For net/tls.c. */
struct ssl_ctx_st *tls_context_ssl(const struct tls_context *context);
enum tls_side tls_context_side(const struct tls_context *context);
const char *tls_context_server_name(const struct tls_context *context); /* to verify; NULL: each connection says */

#endif
