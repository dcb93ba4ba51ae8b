/*
 * The parser of requests. Like Redis it does not check the byte behind a CR, nor the two bytes
 * behind a bulk string.
 */
#include "tests/sim/redis_request.h"

#include <limits.h>

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_reply.h"

#define LINE_MAX_LEN (64 * 1024)
#define UNKNOWN_WORDS_MAX 10 /* most words without a login */
#define UNKNOWN_BULK_MAX 16384
#define CUT_AT 4096 /* parsed bytes that are worth a move of the rest */

static enum request_result bad(struct redis_conn *conn, const char *why)
{
    reply_error(conn, "ERR Protocol error: %s", why);
    conn->is_closing = true;
    return REQUEST_BAD;
}

static struct slice rest_of(const struct redis_conn *conn)
{
    return slice_of(conn->in.at + conn->in_at, conn->in.len - conn->in_at);
}

/* As strchr: not beyond a NUL. */
static const char *find_char(struct slice text, char c)
{
    const char *at = memchr(text.at, c, text.len);
    return at != NULL && memchr(text.at, '\0', (size_t)(at - text.at)) == NULL ? at : NULL;
}

static struct span *add_span(struct redis_conn *conn)
{
    if (conn->n_spans == conn->span_room) {
        conn->span_room = conn->span_room > 0 ? conn->span_room * 2 : 8;
        conn->spans = take_more(conn->spans, conn->span_room, sizeof *conn->spans);
    }
    return &conn->spans[conn->n_spans++];
}

/* ---- inline commands ---- */

static enum request_result read_inline(struct redis_conn *conn)
{
    struct slice rest = rest_of(conn);
    const char *newline = find_char(rest, '\n');
    if (newline == NULL)
        return rest.len > LINE_MAX_LEN ? bad(conn, "too big inline request") : REQUEST_MORE;
    size_t len = (size_t)(newline - rest.at);
    size_t n;
    struct text *words;
    bool has_cr = len > 0 && rest.at[len - 1] == '\r';
    bool is_good = text_split(slice_of(rest.at, len - has_cr), &words, &n);
    for (size_t i = 0; i < n && !is_good; i++)
        text_fini(&words[i]);
    if (!is_good) {
        free(words);
        return bad(conn, "unbalanced quotes in request");
    }
    conn->in_at += len + 1;
    /* Behind a line of blanks Valkey parses inline lines until one has words or is empty. */
    conn->is_inline = n == 0 && len > has_cr && is_valkey_8(conn->redis);
    for (size_t i = 0; i < n; i++)
        *add_span(conn) = (struct span){0};
    if (n == 0)
        free(words);
    conn->inline_words = n > 0 ? words : NULL;
    conn->is_whole = n > 0;
    return n > 0 ? REQUEST_WHOLE : REQUEST_EMPTY;
}

/* ---- arrays of bulk strings ---- */

/* The number of a header line behind its type byte. MORE: the line is incomplete. */
static enum request_result read_header(struct redis_conn *conn, char type, const char *too_big,
                                       struct slice *number)
{
    struct slice rest = rest_of(conn);
    const char *cr = find_char(rest, '\r');
    if (cr == NULL)
        return rest.len > LINE_MAX_LEN ? bad(conn, too_big) : REQUEST_MORE;
    size_t len = (size_t)(cr - rest.at);
    if (len + 2 > rest.len)
        return REQUEST_MORE;
    if (type == '$' && rest.at[0] != '$') {
        reply_error(conn, "ERR Protocol error: expected '$', got '%c'", rest.at[0]);
        conn->is_closing = true;
        return REQUEST_BAD;
    }
    *number = slice_of(rest.at + 1, len > 0 ? len - 1 : 0);
    return REQUEST_WHOLE;
}

static enum request_result read_count(struct redis_conn *conn)
{
    struct slice text;
    int64_t n;
    enum request_result result = read_header(conn, '*', "too big mbulk count string", &text);
    if (result != REQUEST_WHOLE)
        return result;
    int64_t most = is_at_least(conn->redis, 70000) ? INT_MAX : 1024 * 1024;
    if (!text_to_number(text, &n) || n > most)
        return bad(conn, "invalid multibulk length");
    if (n > UNKNOWN_WORDS_MAX && acl_is_stranger(conn))
        return bad(conn, "unauthenticated multibulk length");
    conn->in_at += text.len + 3;
    conn->left_words = n > 0 ? n : 0;
    conn->bulk_len = -1;
    return n > 0 ? REQUEST_WHOLE : REQUEST_EMPTY;
}

static enum request_result read_bulk_len(struct redis_conn *conn)
{
    struct slice text;
    int64_t len;
    enum request_result result = read_header(conn, '$', "too big bulk count string", &text);
    if (result != REQUEST_WHOLE)
        return result;
    if (!text_to_number(text, &len) || len < 0 || len > conn->redis->settings.bulk_max)
        return bad(conn, "invalid bulk length");
    if (len > UNKNOWN_BULK_MAX && acl_is_stranger(conn))
        return bad(conn, "unauthenticated bulk length");
    conn->in_at += text.len + 3;
    conn->bulk_len = len;
    return REQUEST_WHOLE;
}

static enum request_result read_array(struct redis_conn *conn)
{
    enum request_result result = conn->left_words == 0 ? read_count(conn) : REQUEST_WHOLE;
    if (result != REQUEST_WHOLE)
        return result;
    while (conn->left_words > 0) {
        if (conn->in_at == conn->in.len && conn->bulk_len < 0)
            return REQUEST_MORE;
        result = conn->bulk_len < 0 ? read_bulk_len(conn) : REQUEST_WHOLE;
        if (result != REQUEST_WHOLE)
            return result;
        size_t len = (size_t)conn->bulk_len;
        if (conn->in.len - conn->in_at < len + 2)
            return REQUEST_MORE;
        *add_span(conn) = (struct span){conn->in_at, len};
        conn->in_at += len + 2;
        conn->bulk_len = -1;
        conn->left_words--;
    }
    conn->is_whole = true;
    return REQUEST_WHOLE;
}

enum request_result request_read(struct redis_conn *conn)
{
    if (conn->is_whole)
        return REQUEST_WHOLE;
    if (conn->in_at == conn->in.len) {
        conn->in.len = conn->n_spans > 0 ? conn->in.len : 0;
        conn->in_at = conn->in.len;
        return REQUEST_MORE;
    }
    bool is_array = conn->left_words > 0 || (conn->in.at[conn->in_at] == '*' && !conn->is_inline);
    return is_array ? read_array(conn) : read_inline(conn);
}

const struct slice *request_words(struct redis_conn *conn, size_t *n)
{
    *n = conn->n_spans;
    if (conn->argv_room < conn->n_spans) {
        conn->argv_room = conn->n_spans * 2;
        conn->argv = take_more(conn->argv, conn->argv_room, sizeof *conn->argv);
    }
    for (size_t i = 0; i < conn->n_spans; i++)
        conn->argv[i] = conn->inline_words != NULL
                            ? text_slice(&conn->inline_words[i])
                            : slice_of(conn->in.at + conn->spans[i].at, conn->spans[i].len);
    return conn->argv;
}

static void free_inline(struct redis_conn *conn)
{
    for (size_t i = 0; i < conn->n_spans && conn->inline_words != NULL; i++)
        text_fini(&conn->inline_words[i]);
    free(conn->inline_words);
    conn->inline_words = NULL;
}

void request_done(struct redis_conn *conn)
{
    free_inline(conn);
    conn->n_spans = 0;
    conn->is_whole = conn->is_inline = false;
    if (conn->in_at == conn->in.len) {
        conn->in.len = conn->in_at = 0;
    } else if (conn->in_at > CUT_AT && conn->in_at > conn->in.len / 2) {
        text_cut_head(&conn->in, conn->in_at);
        conn->in_at = 0;
    }
}

void request_fini(struct redis_conn *conn)
{
    free_inline(conn);
    free(conn->spans);
    free(conn->argv);
    text_fini(&conn->in);
    conn->spans = NULL;
    conn->argv = NULL;
    conn->n_spans = conn->in_at = 0;
    conn->is_whole = false;
}
