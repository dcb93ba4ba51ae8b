#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define WHY_ROOM 256
#define FETCH_LEAST 4096 /* least number of bytes to read from the socket at once (chosen) */
#define WRITE_PIECES (TLS_AHEAD / CHUNK_BYTES + 4)

/*
 * Bytes that OpenSSL holds for a connection. Measured with OpenSSL 3.0 over 1,000 connections; the
 * larger of the values of TLS 1.2 and TLS 1.3.
 */
#define READY_BYTES 14900      /* idle */
#define READY_PEER_BYTES 23900 /* idle, with a peer certificate */
#define NAME_MOST 255          /* bytes of the name in a certificate (chosen) */

/* ---- the name in a peer's certificate ---- */

/*
 * Returns why the name is invalid, NULL if valid. A NUL is invalid, because programs that read the
 * name would disagree on the end of the name.
 */
static const char *fault_of(const unsigned char *text, int len)
{
    if (len <= 0)
        return "the name in its certificate is empty";
    if (len > NAME_MOST)
        return "the name in its certificate is too long";
    for (int i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] == 0x7f)
            return "the name in its certificate has a NUL or a control character in it";
    return NULL;
}

static bool tls_take_name(const unsigned char *text, int len, char **name, const char **why)
{
    *why = fault_of(text, len);
    if (*why == NULL)
        *name = strndup((const char *)text, (size_t)len);
    if (*why == NULL && *name == NULL)
        *why = "out of memory";
    return *why == NULL;
}

/* Returns the first name that is a URI, a DNS name or a mail address; NULL: there is none. */
static const ASN1_STRING *first_alternative(const GENERAL_NAMES *names)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int kind;
        const ASN1_STRING *text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);
        if (kind == GEN_URI || kind == GEN_DNS || kind == GEN_EMAIL)
            return text;
    }
    return NULL;
}

/* Returns the last common name as written in the certificate, NULL if there is none. */
static const ASN1_STRING *common_name(const X509 *cert)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    const ASN1_STRING *last = NULL;
    for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
        last = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    return last;
}

static bool take_common_name(const X509 *cert, char **name, const char **why)
{
    const ASN1_STRING *text = common_name(cert);
    unsigned char *utf8 = NULL;
    if (text == NULL)
        return true;
    int len = ASN1_STRING_to_UTF8(&utf8, text);
    bool is_good = tls_take_name(utf8, len, name, why);
    OPENSSL_free(utf8);
    return is_good;
}

/*
 * Reads the first subject alternative name that is a URI, a DNS name or a mail address. Without
 * such a name, reads the last common name. *name is heap, or NULL if the peer has no certificate,
 * or a certificate without these names. False if the name is empty, longer than NAME_MOST, or
 * contains a NUL or control character. An invalid name could be mistaken for another name. *why
 * (static) is the reason.
 */
static bool read_name(const SSL *ssl, char **name, const char **why)
{
    const X509 *cert = SSL_get0_peer_certificate(ssl);
    *name = NULL;
    if (cert == NULL)
        return true;
    int found;
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, &found, NULL);
    if (names == NULL && found != -1) {
        *why = "the names in its certificate cannot be read";
        return false;
    }
    const ASN1_STRING *text = names != NULL ? first_alternative(names) : NULL;
    bool is_good = text != NULL ? tls_take_name(ASN1_STRING_get0_data(text),
                                                ASN1_STRING_length(text), name, why)
                                : take_common_name(cert, name, why);
    GENERAL_NAMES_free(names);
    return is_good;
}

/* ---- the BIO: OpenSSL's view of the connection ---- */

static int on_bio_read(BIO *bio, char *out, int room)
{
    struct tls *tls = BIO_get_data(bio);
    struct slice piece = tls->fed;
    BIO_clear_retry_flags(bio);
    bool is_kept = tls->kept.bytes > 0 && chain_peek(&tls->kept, &piece, 1) > 0;
    if (piece.len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = piece.len < (size_t)room ? piece.len : (size_t)room;
    memcpy(out, piece.at, n);
    if (is_kept)
        chain_drop(&tls->kept, tls->pool, n);
    else
        tls->fed = slice_of(piece.at + n, piece.len - n);
    return (int)n;
}

static int on_bio_write(BIO *bio, const char *data, int n)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    return chain_append(&tls->sealed, tls->pool, data, (size_t)n) ? n : -1;
}

static long on_bio_ctrl(BIO *bio, int what, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method; /* shared by all connections; made once, never freed */

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    if (method == NULL)
        return;
    BIO_meth_set_read(method, on_bio_read);
    BIO_meth_set_write(method, on_bio_write);
    BIO_meth_set_ctrl(method, on_bio_ctrl);
}

static BIO *bio_new(struct tls *tls)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- errors ---- */

static void set_why(struct tls *tls, const char *what, const char *detail)
{
    char text[WHY_ROOM];
    snprintf(text, sizeof text, "%s%s", what, detail);
    free(tls->why);
    tls->why = strdup(text); /* out of memory: `why` stays NULL */
}

/*
 * Called when the connection cannot continue after an error of OpenSSL. Empties OpenSSL's error
 * queue, as the next call expects.
 */
static void broke(struct tls *tls)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    long verdict = SSL_get_verify_result(tls->ssl);
    int code = ERR_GET_REASON(error);
    tls->is_broken = true;
    if (verdict != X509_V_OK && !tls->is_ready)
        set_why(tls, "its certificate is refused: ", X509_verify_cert_error_string(verdict));
    else if (code == SSL_R_WRONG_VERSION_NUMBER || code == SSL_R_HTTP_REQUEST)
        set_why(tls, "it does not speak TLS", "");
    else
        set_why(tls,
                "TLS: ", reason != NULL ? reason : "it closed the connection during the handshake");
    ERR_clear_error();
}

static ssize_t tls_fail(int error)
{
    errno = error;
    return -1;
}

/* ---- the socket ---- */

/* Like read(), into tls->fed. */
static ssize_t fetch(struct tls *tls, int fd, size_t want)
{
    assert(tls->fed.len == 0);
    ssize_t n = read(fd, tls->scratch->in, want);
    if (n > 0)
        tls->fed = slice_of(tls->scratch->in, (size_t)n);
    return n;
}

/* Moves the rest of `fed` out of the scratch memory, before other connections use that memory. */
static void tls_keep(struct tls *tls)
{
    if (tls->fed.len > 0 && !tls->is_ended && !tls->is_broken &&
        !chain_append(&tls->kept, tls->pool, tls->fed.at, tls->fed.len)) {
        tls->is_broken = true;
        set_why(tls, "out of memory", "");
    }
    tls->fed = slice_of(NULL, 0);
}

/*
 * Writes encrypted output. False with errno if the socket is broken. A full socket is not an error.
 */
static bool send_sealed(struct tls *tls, int fd)
{
    struct slice pieces[WRITE_PIECES];
    struct iovec iov[WRITE_PIECES];
    if (tls->sealed.bytes == 0)
        return true;
    unsigned n = chain_peek(&tls->sealed, pieces, WRITE_PIECES);
    for (unsigned i = 0; i < n; i++)
        iov[i] = (struct iovec){(char *)(uintptr_t)pieces[i].at, pieces[i].len};
    ssize_t sent = n == 1 ? write(fd, iov->iov_base, iov->iov_len) : writev(fd, iov, (int)n);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    chain_drop(&tls->sealed, tls->pool, (size_t)sent);
    return true;
}

/* Records the number of bytes that OpenSSL holds for this connection. */
static void tls_count(struct tls *tls, size_t bytes)
{
    pool_note_less(tls->pool, tls->counted);
    pool_note_more(tls->pool, bytes);
    tls->counted = bytes;
}

/* ---- the handshake ---- */

bool tls_feed(struct tls *tls, const char *data, size_t n)
{
    return chain_append(&tls->kept, tls->pool, data, n);
}

static bool know_peer(struct tls *tls)
{
    const char *why = NULL;
    bool is_good = !tls->is_accepting || read_name(tls->ssl, &tls->name, &why);
    ERR_clear_error();
    if (is_good)
        return true;
    tls->is_broken = true;
    set_why(tls, why, "");
    return false;
}

int tls_shake(struct tls *tls, int fd)
{
    ssize_t n = fetch(tls, fd, sizeof tls->scratch->in);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    int done = SSL_do_handshake(tls->ssl);
    if (done != 1 && SSL_get_error(tls->ssl, done) != SSL_ERROR_WANT_READ)
        broke(tls);
    tls_keep(tls);
    bool is_sent = send_sealed(tls, fd);
    if (tls->is_broken || (done == 1 && !know_peer(tls)))
        return (int)tls_fail(EPROTO);
    /*
     * if the handshake has ended, an error of the socket does not matter yet: input behind the
     * handshake is still read
     */
    tls->is_ready = done == 1;
    if (!is_sent && !tls->is_ready)
        return -1;
    if (n == 0 && !tls->is_ready)
        return (int)tls_fail(ECONNRESET);
    if (tls->is_ready)
        tls_count(tls,
                  SSL_get0_peer_certificate(tls->ssl) != NULL ? READY_PEER_BYTES : READY_BYTES);
    return tls->is_ready;
}

/* ---- reading ---- */

static bool has_input(const struct tls *tls)
{
    return tls->fed.len > 0 || tls->kept.bytes > 0 || SSL_pending(tls->ssl) > 0;
}

/* Decrypts all available input, at most `room` bytes. */
static size_t decrypt(struct tls *tls, char *at, size_t room)
{
    size_t got = 0;
    while (got < room && !tls->is_ended && has_input(tls)) {
        size_t n;
        if (SSL_read_ex(tls->ssl, at + got, room - got, &n) == 1) {
            got += n;
            continue;
        }
        int error = SSL_get_error(tls->ssl, 0);
        if (error == SSL_ERROR_WANT_READ)
            break; /* the rest of the record has not arrived */
        if (error == SSL_ERROR_ZERO_RETURN)
            tls->is_ended = true;
        else
            broke(tls);
        chain_clear(&tls->kept, tls->pool);
        break;
    }
    return got;
}

/*
 * Called when the socket ends without close_notify. A truncated request is always recognisable. The
 * end of a client's socket therefore counts as a half-close, as over TCP, and a truncated record is
 * dropped. From Redis an end without close_notify is an error, because a reply might be truncated.
 */
static ssize_t end_unannounced(struct tls *tls)
{
    if (!tls->is_accepting)
        return tls_fail(ECONNRESET);
    tls->is_ended = true;
    chain_clear(&tls->kept, tls->pool);
    return 0;
}

/*
 * Called when the socket is broken. Keeps the error for the next call, because a socket reports its
 * error only once.
 */
static void break_later(struct tls *tls, int error)
{
    tls->is_broken = true;
    set_why(tls, strerror(error), "");
}

/*
 * Decrypts, and reads from the socket when input is missing. Returns as read() does, but 0 means no
 * data.
 */
static ssize_t decrypt_more(struct tls *tls, int fd, char *at, size_t room)
{
    size_t got = decrypt(tls, at, room);
    while (got < room && !tls->is_ended && !tls->is_broken) {
        size_t want = room - got < FETCH_LEAST ? FETCH_LEAST : room - got;
        if (want > sizeof tls->scratch->in)
            want = sizeof tls->scratch->in;
        ssize_t n = fetch(tls, fd, want);
        if (n < 0 && got > 0 && errno != EAGAIN && errno != EINTR)
            break_later(tls, errno);
        if (n <= 0 && got > 0)
            break; /* the next read() reports the end again */
        if (n <= 0)
            return n == 0 ? end_unannounced(tls) : -1;
        got += decrypt(tls, at + got, room - got);
        if ((size_t)n < want)
            break;
    }
    return (ssize_t)got;
}

ssize_t tls_read(struct tls *tls, int fd, char *at, size_t room)
{
    ssize_t got = decrypt_more(tls, fd, at, room);
    if (got < 0)
        return -1;
    tls_keep(tls);
    /* sends answers of TLS itself; the next write reports a broken socket */
    (void)!send_sealed(tls, fd);
    if (got > 0)
        return got;
    if (tls->is_broken)
        return tls_fail(EPROTO);
    return tls->is_ended ? 0 : tls_fail(EAGAIN);
}

bool tls_has_news(const struct tls *tls)
{
    return tls->is_ended || tls->is_broken || has_input(tls);
}

/* ---- writing ---- */

/* Position in the pieces of one tls_write. */
struct cursor {
    const struct slice *pieces;
    unsigned n, i;
    size_t at; /* offset in pieces[i] */
};

static struct slice tls_take(struct cursor *cursor, size_t most)
{
    const struct slice *piece = &cursor->pieces[cursor->i];
    size_t left = piece->len - cursor->at;
    struct slice taken = slice_of(piece->at + cursor->at, left < most ? left : most);
    cursor->at += taken.len;
    if (cursor->at == piece->len) {
        cursor->i++;
        cursor->at = 0;
    }
    return taken;
}

/*
 * Returns the content of the next record. A piece that fills the record, or is the last piece, is
 * used in place. Otherwise several pieces are copied to one record.
 */
static struct slice next_record(struct tls *tls, struct cursor *cursor)
{
    struct slice first = tls_take(cursor, TLS_RECORD);
    if (first.len == TLS_RECORD || cursor->i == cursor->n)
        return first;
    size_t len = first.len;
    memcpy(tls->scratch->record, first.at, first.len);
    while (len < TLS_RECORD && cursor->i < cursor->n) {
        struct slice more = tls_take(cursor, TLS_RECORD - len);
        memcpy(tls->scratch->record + len, more.at, more.len);
        len += more.len;
    }
    return slice_of(tls->scratch->record, len);
}

static bool encrypt(struct tls *tls, struct slice record)
{
    size_t written;
    if (SSL_write_ex(tls->ssl, record.at, record.len, &written) == 1)
        return true;
    broke(tls);
    errno = EPROTO;
    return false;
}

ssize_t tls_write(struct tls *tls, int fd, const struct slice *pieces, unsigned n)
{
    struct cursor cursor = {pieces, n, 0, 0};
    size_t taken = 0;
    if (tls->is_broken)
        return tls_fail(EPROTO);
    if (!send_sealed(tls, fd))
        return -1;
    while (cursor.i < cursor.n && !tls_is_full(tls)) {
        while (cursor.i < cursor.n && tls->sealed.bytes < TLS_AHEAD) {
            struct slice record = next_record(tls, &cursor);
            if (!encrypt(tls, record))
                return -1;
            taken += record.len;
        }
        if (!send_sealed(tls, fd))
            return -1;
    }
    return (ssize_t)taken;
}

void tls_end(struct tls *tls, int fd)
{
    bool is_said = (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) != 0;
    if (!tls->is_ready || tls->is_broken || tls_is_full(tls) || is_said)
        return;
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
    (void)!send_sealed(tls, fd);
}

/* ---- start and end ---- */

/*
 * Sets the name that the peer's certificate must have. False if OpenSSL refuses the name, or if a
 * verified server has no name.
 */
static bool expect(SSL *ssl, const char *name)
{
    if (name == NULL)
        return SSL_is_server(ssl) != 0 || SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE;
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

static bool tls_begin(struct tls *tls, const struct tls_context *context, const char *server_name)
{
    tls->ssl = SSL_new(tls_context_ssl(context));
    BIO *bio = tls->ssl != NULL ? bio_new(tls) : NULL;
    if (bio == NULL)
        return false;
    SSL_set_bio(tls->ssl, bio, bio);
    tls->is_accepting = tls_context_side(context) == TLS_ACCEPT;
    if (tls->is_accepting)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    const char *configured = tls_context_server_name(context);
    return expect(tls->ssl, configured != NULL ? configured : server_name);
}

struct tls *tls_new(struct tls_context *context, const char *server_name, struct pool *pool,
                    struct tls_scratch *scratch)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL || scratch == NULL) {
        free(tls);
        return NULL;
    }
    tls->pool = pool;
    tls->scratch = scratch;
    tls_count(tls, TLS_SHAKING_BYTES);
    bool is_good = tls_begin(tls, context, server_name);
    ERR_clear_error();
    if (is_good)
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    tls_count(tls, 0);
    chain_clear(&tls->kept, tls->pool);
    chain_clear(&tls->sealed, tls->pool);
    free(tls->name);
    free(tls->why);
    free(tls);
}
