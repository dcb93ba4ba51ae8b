/*
 * Shared state of TLS connections: certificate and key, trusted CAs, protocols and ciphers (an
 * SSL_CTX).
 *
 * A context is made from files, then immutable, and reference-counted. When a reload makes a new
 * context, open connections keep their old context. Any thread may call.
 */
#ifndef WEIR_NET_TLS_CONTEXT_H
#define WEIR_NET_TLS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

/* TLS_ACCEPT: for listeners. TLS_CONNECT: for connections to the upstream. */
enum tls_side { TLS_ACCEPT, TLS_CONNECT };

/* Whether clients of a listener must not, may or must present a certificate. */
enum tls_auth { TLS_AUTH_NO, TLS_AUTH_OPTIONAL, TLS_AUTH_YES };

/* Settings that a report can name. */
enum tls_setting {
    TLS_CERT,
    TLS_KEY,
    TLS_CA,
    TLS_CIPHERS,
    TLS_CIPHERSUITES,
    TLS_SERVER_NAME,
    TLS_SETTINGS
};

struct tls_settings {
    /* heap, NULL: not set; paths of PEM files, OpenSSL's cipher lists, a host name or address */
    char *texts[TLS_SETTINGS];
    bool no_tls12, no_tls13;
    enum tls_auth auth; /* for TLS_ACCEPT */
    bool is_unverified; /* for TLS_CONNECT: the upstream's certificate is not verified */
};

void tls_settings_fini(struct tls_settings *settings);

struct tls_context;

/*
 * Reads the files. `say` is called once for each error, and for each warning (a key readable by
 * other users, an expired certificate). `what`, the text of the message, is valid during the call.
 * Returns NULL after an error.
 */
__attribute__((warn_unused_result)) struct tls_context *tls_context_new(
    const struct tls_settings *settings, enum tls_side side,
    void (*say)(void *arg, bool is_error, enum tls_setting which, const char *what), void *arg);

/* Adds a reference. Safe on NULL, as is tls_context_put. */
struct tls_context *tls_context_get(struct tls_context *context);
void tls_context_put(struct tls_context *context);

/* Returns the version of the running library, for example "3.0.15". */
const char *tls_version(void);

/* The next three functions are for net/tls.c. */
struct ssl_ctx_st *tls_context_ssl(const struct tls_context *context);
enum tls_side tls_context_side(const struct tls_context *context);
/* Returns the name to verify, NULL if each connection sets its own. */
const char *tls_context_server_name(const struct tls_context *context);

#endif
