/*
 * Contexts of TLS connections. Every setting is checked separately, so that all errors are reported
 * at once.
 */
#include "net/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define WHY_ROOM 320
#define SESSION_WORD "weir" /* prevents resumption of another program's sessions */

struct tls_context {
    _Atomic unsigned holders;
    enum tls_side side;
    SSL_CTX *ssl;
    char *server_name; /* NULL: names are not verified */
};

/* State while a context is made. */
struct making {
    const struct tls_settings *settings;
    SSL_CTX *ssl;
    void (*say)(void *arg, bool is_error, enum tls_setting which, const char *what);
    void *arg;
    bool is_bad;
};

void tls_settings_fini(struct tls_settings *settings)
{
    for (size_t i = 0; i < TLS_SETTINGS; i++)
        free(settings->texts[i]);
    *settings = (struct tls_settings){0};
}

/* ---- reports ---- */

/* Returns OpenSSL's text for the last error, and empties OpenSSL's error queue. */
static const char *last_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason != NULL ? reason : "no reason is given";
}

__attribute__((format(printf, 3, 4))) static void wrong(struct making *m, enum tls_setting which,
                                                        const char *format, ...)
{
    char why[WHY_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    m->is_bad = true;
    m->say(m->arg, true, which, why);
}

__attribute__((format(printf, 3, 4))) static void odd(struct making *m, enum tls_setting which,
                                                      const char *format, ...)
{
    char why[WHY_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    m->say(m->arg, false, which, why);
}

/* Opens the file of a setting. If the file cannot be opened, reports the error and returns NULL. */
static BIO *tls_context_open_file(struct making *m, enum tls_setting which)
{
    const char *path = m->settings->texts[which];
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        wrong(m, which, "%s is not a regular file", path);
        return NULL;
    }
    errno = 0;
    BIO *file = BIO_new_file(path, "r");
    if (file == NULL)
        wrong(m, which, "%s cannot be opened: %s", path, strerror(errno));
    ERR_clear_error();
    return file;
}

/* ---- certificate and key ---- */

static void check_dates(struct making *m, const X509 *cert)
{
    const char *path = m->settings->texts[TLS_CERT];
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
        odd(m, TLS_CERT, "the certificate in %s has expired: peers that verify it will refuse it",
            path);
    else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
        odd(m, TLS_CERT,
            "the certificate in %s is not valid yet: peers that verify it will refuse it", path);
}

static void use_cert(struct making *m)
{
    const char *path = m->settings->texts[TLS_CERT];
    BIO *file = tls_context_open_file(m, TLS_CERT);
    if (file == NULL)
        return;
    BIO_free(file);
    if (SSL_CTX_use_certificate_chain_file(m->ssl, path) == 1)
        check_dates(m, SSL_CTX_get0_certificate(m->ssl));
    else
        wrong(m, TLS_CERT, "%s holds no usable certificate in PEM: %s", path, last_reason());
}

/* Called for encrypted keys: weir cannot ask for a passphrase. */
static int no_passphrase(char *out, int size, int is_writing, void *arg)
{
    (void)out;
    (void)size;
    (void)is_writing;
    *(bool *)arg = true;
    return -1;
}

static void warn_of_others(struct making *m)
{
    const char *path = m->settings->texts[TLS_KEY];
    struct stat status;
    if (stat(path, &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        odd(m, TLS_KEY, "other users can read %s: chmod 600 it", path);
}

/*
 * True if the key belongs to the certificate. True also without a certificate, because use_cert has
 * reported that error.
 */
static bool tls_context_fits(struct making *m, EVP_PKEY *key)
{
    const X509 *cert = SSL_CTX_get0_certificate(m->ssl);
    return cert == NULL ||
           (X509_check_private_key(cert, key) == 1 && SSL_CTX_use_PrivateKey(m->ssl, key) == 1);
}

static void use_key(struct making *m)
{
    const char *path = m->settings->texts[TLS_KEY];
    bool is_encrypted = false;
    BIO *file = tls_context_open_file(m, TLS_KEY);
    if (file == NULL)
        return;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, no_passphrase, &is_encrypted);
    BIO_free(file);
    if (is_encrypted)
        wrong(m, TLS_KEY, "the key in %s is encrypted: write it without a passphrase", path);
    else if (key == NULL)
        wrong(m, TLS_KEY, "%s holds no usable private key in PEM: %s", path, last_reason());
    else if (!tls_context_fits(m, key))
        wrong(m, TLS_KEY, "the key in %s does not belong to the certificate in %s", path,
              m->settings->texts[TLS_CERT]);
    else
        warn_of_others(m);
    EVP_PKEY_free(key);
    ERR_clear_error();
}

/* ---- trusted certificates ---- */

static void use_ca(struct making *m, enum tls_side side)
{
    const char *path = m->settings->texts[TLS_CA];
    if (path == NULL) {
        if (side == TLS_CONNECT)
            SSL_CTX_set_default_verify_paths(m->ssl);
        return;
    }
    BIO *file = tls_context_open_file(m, TLS_CA);
    if (file == NULL)
        return;
    BIO_free(file);
    if (SSL_CTX_load_verify_file(m->ssl, path) != 1)
        wrong(m, TLS_CA, "%s holds no usable certificates in PEM: %s", path, last_reason());
    else if (side == TLS_ACCEPT)
        SSL_CTX_set_client_CA_list(m->ssl, SSL_load_client_CA_file(path));
    ERR_clear_error();
}

static int verify_mode(const struct tls_settings *settings, enum tls_side side)
{
    if (side == TLS_CONNECT)
        return settings->is_unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    if (settings->auth == TLS_AUTH_NO)
        return SSL_VERIFY_NONE;
    return settings->auth == TLS_AUTH_YES ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                                          : SSL_VERIFY_PEER;
}

/* ---- protocols and ciphers ---- */

static void use_ciphers(struct making *m)
{
    const char *ciphers = m->settings->texts[TLS_CIPHERS];
    const char *suites = m->settings->texts[TLS_CIPHERSUITES];
    if (ciphers != NULL && SSL_CTX_set_cipher_list(m->ssl, ciphers) != 1)
        wrong(m, TLS_CIPHERS, "\"%s\" names no cipher that OpenSSL knows", ciphers);
    if (suites != NULL && SSL_CTX_set_ciphersuites(m->ssl, suites) != 1)
        wrong(m, TLS_CIPHERSUITES, "\"%s\" names a cipher suite that OpenSSL does not know",
              suites);
    ERR_clear_error();
}

static void set_manners(struct making *m, enum tls_side side)
{
    SSL_CTX_set_min_proto_version(m->ssl, m->settings->no_tls12 ? TLS1_3_VERSION : TLS1_2_VERSION);
    if (m->settings->no_tls13)
        SSL_CTX_set_max_proto_version(m->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(m->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* An idle connection owns no buffers. */
    SSL_CTX_set_mode(m->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(m->ssl, verify_mode(m->settings, side), NULL);
    /* Clients keep their sessions, in tickets. The ticket keys are freed with this context. */
    SSL_CTX_set_session_cache_mode(m->ssl, SSL_SESS_CACHE_OFF);
    if (side == TLS_CONNECT)
        return;
    SSL_CTX_set_session_id_context(m->ssl, (const unsigned char *)SESSION_WORD,
                                   sizeof SESSION_WORD - 1);
    SSL_CTX_set_num_tickets(m->ssl, 1);
}

/* ---- making and releasing ---- */

static void tls_context_fill(struct making *m, enum tls_side side)
{
    set_manners(m, side);
    if (m->settings->texts[TLS_CERT] != NULL)
        use_cert(m);
    if (m->settings->texts[TLS_KEY] != NULL)
        use_key(m);
    use_ca(m, side);
    use_ciphers(m);
}

struct tls_context *tls_context_new(const struct tls_settings *settings, enum tls_side side,
                                    void (*say)(void *arg, bool is_error, enum tls_setting which,
                                                const char *what),
                                    void *arg)
{
    SSL_CTX *ssl = SSL_CTX_new(side == TLS_ACCEPT ? TLS_server_method() : TLS_client_method());
    if (ssl == NULL) {
        say(arg, true, TLS_CERT,
            "OpenSSL cannot be used: out of memory, or its own configuration is wrong");
        return NULL;
    }
    struct making m = {.settings = settings, .ssl = ssl, .say = say, .arg = arg};
    tls_context_fill(&m, side);
    if (m.is_bad) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    struct tls_context *context = mem_zalloc(1, sizeof *context);
    const char *name = settings->texts[TLS_SERVER_NAME];
    atomic_init(&context->holders, 1);
    context->side = side;
    context->ssl = ssl;
    if (name != NULL)
        context->server_name = mem_strndup(name, strlen(name));
    return context;
}

struct tls_context *tls_context_get(struct tls_context *context)
{
    if (context != NULL)
        atomic_fetch_add_explicit(&context->holders, 1, memory_order_relaxed);
    return context;
}

void tls_context_put(struct tls_context *context)
{
    if (context == NULL ||
        atomic_fetch_sub_explicit(&context->holders, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(context->ssl);
    free(context->server_name);
    free(context);
}

const char *tls_version(void)
{
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

struct ssl_ctx_st *tls_context_ssl(const struct tls_context *context)
{
    return context->ssl;
}

enum tls_side tls_context_side(const struct tls_context *context)
{
    return context->side;
}

const char *tls_context_server_name(const struct tls_context *context)
{
    return context->server_name;
}
