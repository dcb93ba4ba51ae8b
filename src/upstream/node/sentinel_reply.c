#include "upstream/node/sentinel_reply.h"

#include <string.h>

#include "base/num.h"

/* ---- coming in ---- */

enum scan_result sentinel_inbox_take(struct sentinel_inbox *inbox, const char *data, size_t n, size_t *used,
                                     struct slice *frame)
{
    enum scan_result result = reply_scan(&inbox->scan, data, n, used);
    if (result == SCAN_BAD || !bytes_add(&inbox->bytes, slice_of(data, *used), SENTINEL_REPLY_MAX))
        return SCAN_BAD;
    *frame = bytes_slice(&inbox->bytes);
    if (result == SCAN_FRAME)
        inbox->bytes.len = 0;
    return result;
}

void sentinel_inbox_fini(struct sentinel_inbox *inbox)
{
    bytes_fini(&inbox->bytes);
    memset(&inbox->scan, 0, sizeof inbox->scan);
}

/* ---- values ---- */

/* Up to the CRLF, which is taken too. */
static bool take_line(struct slice *rest, struct slice *line)
{
    const char *end = rest->len > 0 ? memchr(rest->at, '\r', rest->len) : NULL;
    if (end == NULL || end + 2 > rest->at + rest->len || end[1] != '\n')
        return false;
    *line = slice_of(rest->at, (size_t)(end - rest->at));
    *rest = slice_of(end + 2, rest->len - line->len - 2);
    return true;
}

static bool take_bulk(struct slice *rest, int64_t len, struct slice *text)
{
    if (len < 0 || rest->len < 2 || (uint64_t)len > rest->len - 2 || memcmp(rest->at + len, "\r\n", 2) != 0)
        return false;
    *text = slice_of(rest->at, (size_t)len);
    *rest = slice_of(rest->at + len + 2, rest->len - (size_t)len - 2);
    return true;
}

static bool next_at(struct slice *rest, struct said *value, unsigned depth);

static bool take_elements(struct slice *rest, int64_t n, struct said *value, unsigned depth)
{
    const char *begin = rest->at;
    struct said element;
    for (int64_t i = 0; i < n; i++)
        if (!next_at(rest, &element, depth + 1))
            return false;
    value->inside = slice_of(begin, (size_t)(rest->at - begin));
    return true;
}

/* A number stands behind the type: of bytes, or of elements. */
static bool take_counted(struct slice *rest, char type, int64_t n, struct said *value, unsigned depth)
{
    bool is_bulk = type == '$' || type == '=' || type == '!';
    if (n < 0) {
        value->kind = SAID_NIL;
        return n == -1 && (type == '$' || type == '*');
    }
    if (!is_bulk) {
        value->kind = type == '>' ? SAID_PUSH : SAID_LIST;
        return n <= SENTINEL_REPLY_MAX && take_elements(rest, type == '%' || type == '|' ? 2 * n : n, value, depth);
    }
    value->kind = type == '!' ? SAID_ERROR : SAID_TEXT;
    if (!take_bulk(rest, n, &value->text))
        return false;
    if (type == '=' && n >= 4) /* "txt:" */
        value->text = slice_of(value->text.at + 4, value->text.len - 4);
    return true;
}

static bool next_at(struct slice *rest, struct said *value, unsigned depth)
{
    struct slice line;
    int64_t n;
    if (depth >= SENTINEL_DEPTH || !take_line(rest, &line) || line.len == 0)
        return false;
    char type = line.at[0];
    struct slice text = slice_of(line.at + 1, line.len - 1);
    *value = (struct said){.kind = SAID_TEXT, .text = text, .inside = slice_of(text.at, 0)};
    switch (type) {
    case '+':
    case ':':
    case ',':
    case '#':
    case '(':
        return true;
    case '-':
        value->kind = SAID_ERROR;
        return true;
    case '_':
        value->kind = SAID_NIL;
        return true;
    case '|': /* an attribute goes before its value, and says nothing that weir looks for */
        return num_parse(text, &n) && n >= 0 && take_counted(rest, type, n, value, depth) &&
               next_at(rest, value, depth + 1);
    case '$':
    case '=':
    case '!':
    case '*':
    case '~':
    case '%':
        return num_parse(text, &n) && take_counted(rest, type, n, value, depth);
    case '>': /* never inside another value */
        return depth == 0 && num_parse(text, &n) && take_counted(rest, type, n, value, depth);
    default:
        return false;
    }
}

bool said_next(struct slice *rest, struct said *value)
{
    return next_at(rest, value, 0);
}

bool said_field(const struct said *list, const char *name, struct slice *text)
{
    struct slice rest = list->inside;
    struct said key, value;
    while (said_next(&rest, &key) && said_next(&rest, &value)) {
        if (key.kind != SAID_TEXT || !slice_eq(key.text, slice_str(name)))
            continue;
        *text = value.text;
        return value.kind == SAID_TEXT;
    }
    return false;
}

bool said_texts(const struct said *list, struct slice *texts, size_t n)
{
    struct slice rest = list->inside;
    struct said value;
    for (size_t i = 0; i < n; i++) {
        if (!said_next(&rest, &value) || value.kind != SAID_TEXT)
            return false;
        texts[i] = value.text;
    }
    return list->kind == SAID_LIST || list->kind == SAID_PUSH;
}

/* ---- what sentinels tell of ---- */

/* Of a name or of an address' digits; a scope may follow. */
static bool is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr(".-_:%", c) != NULL;
}

bool sentinel_read_address(struct slice host, struct slice port, struct sentinel_server *server)
{
    int64_t number;
    if (host.len == 0 || host.len >= sizeof server->host || !num_parse(port, &number) || number < 1 ||
        number > UINT16_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (host.at[i] == '\0' || !is_host_byte(host.at[i]))
            return false;
    memcpy(server->host, host.at, host.len);
    server->host[host.len] = '\0';
    server->port = (uint16_t)number;
    return true;
}

/* Flags are words between commas. */
static bool has_flag(struct slice flags, const char *flag)
{
    size_t len = strlen(flag);
    while (flags.len > 0) {
        const char *comma = memchr(flags.at, ',', flags.len);
        size_t n = comma != NULL ? (size_t)(comma - flags.at) : flags.len;
        if (n == len && memcmp(flags.at, flag, n) == 0)
            return true;
        flags = comma != NULL ? slice_of(comma + 1, flags.len - n - 1) : slice_of(flags.at + n, 0);
    }
    return false;
}

bool sentinel_read_server(const struct said *list, struct sentinel_server *server)
{
    struct slice host, port, text;
    int64_t epoch;
    *server = (struct sentinel_server){.port = 0};
    if (list->kind != SAID_LIST || !said_field(list, "ip", &host) || !said_field(list, "port", &port) ||
        !sentinel_read_address(host, port, server))
        return false;
    if (said_field(list, "config-epoch", &text) && num_parse(text, &epoch) && epoch > 0)
        server->epoch = (uint64_t)epoch;
    if (said_field(list, "runid", &text) && text.len < sizeof server->run_id)
        memcpy(server->run_id, text.at, text.len);
    if (said_field(list, "flags", &text)) {
        server->is_failing_over = has_flag(text, "failover_in_progress");
        server->is_down = has_flag(text, "s_down") || has_flag(text, "o_down") || has_flag(text, "disconnected");
    }
    return true;
}

bool sentinel_read_message(const struct said *push, const char *channel, struct slice *payload)
{
    struct slice texts[3];
    if (push->kind != SAID_PUSH || !said_texts(push, texts, 3))
        return false;
    *payload = texts[2];
    return slice_eq(texts[0], slice_str("message")) && slice_eq(texts[1], slice_str(channel));
}

static bool begins(struct slice text, const char *word)
{
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.at, word, len) == 0;
}

static bool holds(struct slice text, const char *word)
{
    return memmem(text.at, text.len, word, strlen(word)) != NULL;
}

enum sentinel_refusal sentinel_judge_error(struct slice error)
{
    if (begins(error, "NOAUTH"))
        return SENTINEL_WANTS_LOGIN;
    if (begins(error, "WRONGPASS") || holds(error, "invalid password") || holds(error, "called without any password"))
        return SENTINEL_REFUSES_LOGIN;
    if (begins(error, "NOPERM"))
        return SENTINEL_FORBIDS;
    if (holds(error, "No such master"))
        return SENTINEL_KNOWS_NO_NAME;
    if (begins(error, "NOPROTO") || holds(error, "nknown command") || holds(error, "nknown sentinel subcommand") ||
        holds(error, "nknown subcommand"))
        return SENTINEL_UNKNOWN;
    return SENTINEL_OTHER;
}
