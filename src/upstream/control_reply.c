/* Judges replies. The type of each reply is checked first: only strings are read as strings. */
#include "upstream/control_reply.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "base/num.h"

#define MIN_MAJOR 6
#define MIN_MINOR 2
#define MAX_CATEGORIES 64

/* ---- receiving ---- */

enum scan_result control_inbox_take(struct control_inbox *inbox, const char *data, size_t n,
                                    size_t *used, struct slice *frame)
{
    size_t most = inbox->most > 0 ? inbox->most : CONTROL_REPLY_MAX;
    enum scan_result result = reply_scan(&inbox->scan, data, n, used);
    if (result == SCAN_BAD || !bytes_add(&inbox->bytes, slice_of(data, *used), most))
        return SCAN_BAD;
    *frame = bytes_slice(&inbox->bytes);
    if (result == SCAN_FRAME)
        inbox->bytes.len = 0;
    return result;
}

void control_inbox_fini(struct control_inbox *inbox)
{
    bytes_fini(&inbox->bytes);
    memset(&inbox->scan, 0, sizeof inbox->scan);
}

struct redisReply *control_read(struct slice frame)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    if (reader == NULL)
        return NULL;
    bool is_read = redisReaderFeed(reader, frame.at, frame.len) == REDIS_OK &&
                   redisReaderGetReply(reader, &reply) == REDIS_OK;
    redisReaderFree(reader);
    return is_read ? reply : NULL;
}

void control_reply_free(struct redisReply *reply)
{
    if (reply != NULL)
        freeReplyObject(reply);
}

/* ---- parts of a reply ---- */

static struct slice control_reply_text_of(const redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ||
                   reply->type == REDIS_REPLY_ERROR;
    return is_text && reply->str != NULL ? slice_of(reply->str, (size_t)reply->len)
                                         : slice_of("", 0);
}

static int64_t integer_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

static size_t elements_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

static bool control_reply_begins(struct slice text, const char *word)
{
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.at, word, len) == 0;
}

static bool control_reply_starts(const redisReply *reply, const char *word)
{
    return control_reply_begins(control_reply_text_of(reply), word);
}

/* ---- the text of INFO ---- */

/* Returns the value of the line "field:value" in INFO's text; empty: no line for `field`. */
static struct slice info_field(struct slice info, struct slice field)
{
    const char *end = info.at + info.len;
    for (const char *line = info.at; line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        const char *stop = eol != NULL ? eol : end;
        if ((size_t)(stop - line) > field.len && line[field.len] == ':' &&
            memcmp(line, field.at, field.len) == 0) {
            const char *value = line + field.len + 1;
            size_t n = (size_t)(stop - value);
            return slice_of(value, n > 0 && value[n - 1] == '\r' ? n - 1 : n);
        }
        line = eol != NULL ? eol + 1 : end;
    }
    return slice_of("", 0);
}

static bool is_old(struct slice version)
{
    int64_t major = 0;
    int64_t minor = 0;
    const char *dot = version.len > 0 ? memchr(version.at, '.', version.len) : NULL;
    if (dot == NULL || !num_parse(slice_of(version.at, (size_t)(dot - version.at)), &major))
        return false; /* a version of unknown format is accepted */
    const char *rest = dot + 1;
    size_t left = version.len - (size_t)(rest - version.at);
    const char *second = memchr(rest, '.', left);
    if (!num_parse(slice_of(rest, second != NULL ? (size_t)(second - rest) : left), &minor))
        return false;
    return major < MIN_MAJOR || (major == MIN_MAJOR && minor < MIN_MINOR);
}

/* ---- HELLO, AUTH, INFO, PING ---- */

bool control_is_idle(const struct redisReply *reply)
{
    return is_error(reply) &&
           (control_reply_starts(reply, "LOADING") || control_reply_starts(reply, "MASTERDOWN"));
}

bool control_is_shut(const struct redisReply *reply)
{
    return control_is_idle(reply) ||
           (is_error(reply) && (control_reply_starts(reply, "DENIED") ||
                                control_reply_starts(reply, "ERR max number of clients")));
}

static enum control_verdict unfit(const char *text, const char **why)
{
    *why = text;
    return CONTROL_UNFIT;
}

/* Returns the verdict on an error's text: UNFIT for an unknown error. */
static enum control_verdict verdict_of(struct slice error)
{
    if (control_reply_begins(error, "NOAUTH"))
        return CONTROL_NOAUTH;
    if (control_reply_begins(error, "NOPERM") || control_reply_begins(error, "ERR unknown command"))
        return CONTROL_DENIED;
    return control_reply_begins(error, "BUSY ") ? CONTROL_BUSY : CONTROL_UNFIT;
}

static enum control_verdict judge_error(const struct redisReply *reply, const char **why)
{
    enum control_verdict verdict = verdict_of(control_reply_text_of(reply));
    return verdict == CONTROL_UNFIT ? unfit(reply->str, why) : verdict;
}

/* Judge a server by its mode and version. An empty mode or version is unknown. */
static enum control_verdict judge_server(struct slice mode, struct slice version,
                                         enum control_form form, const char **why)
{
    if (slice_eq(mode, SLICE("sentinel")))
        *why = "it is a sentinel, which has no data: write upstream = sentinel:NAME@ADDRESS";
    else if (form == CONTROL_OF_SERVER && slice_eq(mode, SLICE("cluster")))
        *why = "it is a node of a cluster: write upstream = cluster:ADDRESS";
    else if (form == CONTROL_OF_CLUSTER && slice_eq(mode, SLICE("standalone")))
        *why =
            "it is not in a cluster (cluster_enabled:0): write upstream = ADDRESS, without cluster:";
    else if (is_old(version))
        *why = "it is older than Redis 6.2";
    else
        return CONTROL_GOOD;
    return CONTROL_BARRED;
}

/*
 * Returns the value of the field `name` in HELLO's answer; empty: the answer has no field `name`.
 */
static struct slice hello_field(const struct redisReply *reply, struct slice name)
{
    for (size_t i = 0; i + 1 < elements_of(reply); i += 2)
        if (slice_eq(control_reply_text_of(reply->element[i]), name))
            return control_reply_text_of(reply->element[i + 1]);
    return slice_of("", 0);
}

enum control_verdict control_judge_hello(const struct redisReply *reply, enum control_form form,
                                         const char **why)
{
    if (control_is_shut(reply))
        return unfit(reply->str, why);
    if (is_error(reply))
        return control_reply_starts(reply, "NOAUTH") ? CONTROL_NOAUTH : CONTROL_DENIED;
    if (reply->type != REDIS_REPLY_ARRAY)
        return unfit("its reply to HELLO is not that of a Redis", why);
    return judge_server(hello_field(reply, SLICE("mode")), hello_field(reply, SLICE("version")),
                        form, why);
}

enum node_role control_read_role(const struct redisReply *reply)
{
    struct slice role = hello_field(reply, SLICE("role"));
    if (slice_eq(role, SLICE("master")))
        return ROLE_MASTER;
    return role.len > 0 ? ROLE_REPLICA : ROLE_UNKNOWN;
}

enum control_verdict control_judge_auth(const struct redisReply *reply, const char **why)
{
    if (reply->type == REDIS_REPLY_STATUS && slice_eq(control_reply_text_of(reply), SLICE("OK")))
        return CONTROL_GOOD;
    return control_is_shut(reply) ? unfit(reply->str, why) : CONTROL_DENIED;
}

enum control_verdict control_judge_info(const struct redisReply *reply, enum control_form form,
                                        const char **why)
{
    if (is_error(reply))
        return judge_error(reply, why);
    if (reply->type != REDIS_REPLY_STRING)
        return unfit("its reply to INFO is not that of a Redis", why);
    struct slice info = control_reply_text_of(reply);
    struct slice mode = info_field(info, SLICE("redis_mode"));
    if (mode.len == 0)
        mode = info_field(info, SLICE("server_mode")); /* the field's name in Valkey */
    return judge_server(mode, info_field(info, SLICE("redis_version")), form, why);
}

enum control_verdict control_judge_command(const struct redisReply *reply, const char **why)
{
    if (!is_error(reply))
        return CONTROL_DENIED;
    if (control_is_shut(reply))
        return unfit(reply->str, why);
    if (control_reply_starts(reply, "NOAUTH"))
        return CONTROL_NOAUTH;
    return control_reply_starts(reply, "BUSY ") ? CONTROL_BUSY : CONTROL_DENIED;
}

enum control_verdict control_judge_ping(const struct redisReply *reply, const char **why)
{
    return is_error(reply) ? judge_error(reply, why) : CONTROL_GOOD;
}

/* The frame is whole. *text is an error's line without the '-', or the content of a bulk string. */
enum control_verdict control_judge_text(struct slice frame, struct slice *text)
{
    const char *end = memchr(frame.at, '\r', frame.len);
    size_t head = end != NULL ? (size_t)(end - frame.at) : frame.len;
    if (frame.len > 0 && frame.at[0] == '-') {
        *text = slice_of(frame.at + 1, head - 1);
        return verdict_of(*text);
    }
    if (frame.len > head + 4 && frame.at[0] == '$') {
        *text = slice_of(frame.at + head + 2, frame.len - head - 4);
        return CONTROL_GOOD;
    }
    *text = SLICE("its replies are not those of a Redis");
    return CONTROL_UNFIT;
}

bool control_repeats(const struct redisReply *reply, struct slice text)
{
    struct slice said = control_reply_text_of(reply);
    return memmem(said.at, said.len, text.at, text.len) != NULL;
}

uint32_t control_read_maxclients(const struct redisReply *reply)
{
    int64_t most;
    bool is_said = reply->type == REDIS_REPLY_STRING &&
                   num_parse(info_field(control_reply_text_of(reply), SLICE("maxclients")), &most);
    return is_said && most > 0 && most <= INT32_MAX ? (uint32_t)most : 0;
}

/* ---- COMMAND ---- */

/*
 * Names are looked up, shown and logged: names with characters that Redis does not use are ignored.
 */
static bool control_reply_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] > '~')
            return false;
    return name.len > 0;
}

static size_t take_categories(const redisReply *listed, struct slice *categories)
{
    size_t n = 0;
    for (size_t i = 0; i < elements_of(listed) && n < MAX_CATEGORIES; i++) {
        struct slice name = control_reply_text_of(listed->element[i]);
        if (name.len > 1 && control_reply_is_name(name))
            categories[n++] = slice_of(name.at + 1, name.len - 1);
    }
    return n;
}

/*
 * One element of COMMAND: name, arity, flags, first, last, step, categories, tips, key specs,
 * subcommands.
 */
static void add_command(struct command_table *table, const redisReply *row, bool is_container,
                        size_t *left)
{
    if (elements_of(row) < 7 || *left == 0 ||
        !control_reply_is_name(control_reply_text_of(row->element[0])))
        return;
    struct slice categories[MAX_CATEGORIES];
    struct command_info info = {
        .name = control_reply_text_of(row->element[0]),
        .arity = integer_of(row->element[1]),
        .first_key = integer_of(row->element[3]),
        .last_key = integer_of(row->element[4]),
        .key_step = integer_of(row->element[5]),
        .categories = categories,
        .n_categories = take_categories(row->element[6], categories),
    };
    const redisReply *flags = row->element[2];
    for (size_t i = 0; i < elements_of(flags); i++)
        info.flags |= command_flag(control_reply_text_of(flags->element[i]));
    const redisReply *tips = row->elements >= 8 ? row->element[7] : NULL;
    for (size_t i = 0; tips != NULL && i < elements_of(tips); i++)
        fanout_read_tip(&info.tips, control_reply_text_of(tips->element[i]));
    --*left;
    command_table_add(table, &info);
    const redisReply *subcommands = is_container && row->elements >= 10 ? row->element[9] : NULL;
    for (size_t i = 0; subcommands != NULL && i < elements_of(subcommands); i++)
        add_command(table, subcommands->element[i], false, left);
}

struct command_table *control_read_commands(const struct redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return NULL;
    size_t left = CONTROL_COMMANDS_MAX;
    struct command_table *table = command_table_new();
    for (size_t i = 0; i < reply->elements; i++)
        add_command(table, reply->element[i], true, &left);
    return table;
}

/* ---- values in replies of sentinels ---- */

/* Takes the text up to the CRLF, and skips the CRLF. */
static bool control_reply_take_line(struct slice *rest, struct slice *line)
{
    const char *end = rest->len > 0 ? memchr(rest->at, '\r', rest->len) : NULL;
    if (end == NULL || end + 2 > rest->at + rest->len || end[1] != '\n')
        return false;
    *line = slice_of(rest->at, (size_t)(end - rest->at));
    *rest = slice_of(end + 2, rest->len - line->len - 2);
    return true;
}

static bool control_reply_take_bulk(struct slice *rest, int64_t len, struct slice *text)
{
    if (len < 0 || rest->len < 2 || (uint64_t)len > rest->len - 2 ||
        memcmp(rest->at + len, "\r\n", 2) != 0)
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

/* Takes a value with a number of bytes or elements behind the type byte. */
static bool control_reply_take_counted(struct slice *rest, char type, int64_t n, struct said *value,
                                       unsigned depth)
{
    bool is_bulk = type == '$' || type == '=' || type == '!';
    if (n < 0) {
        value->kind = SAID_NIL;
        return n == -1 && (type == '$' || type == '*');
    }
    if (!is_bulk) {
        value->kind = type == '>' ? SAID_PUSH : SAID_LIST;
        return n <= SENTINEL_REPLY_MAX &&
               take_elements(rest, type == '%' || type == '|' ? 2 * n : n, value, depth);
    }
    value->kind = type == '!' ? SAID_ERROR : SAID_TEXT;
    if (!control_reply_take_bulk(rest, n, &value->text))
        return false;
    if (type == '=' && n >= 4) /* "txt:" */
        value->text = slice_of(value->text.at + 4, value->text.len - 4);
    return true;
}

static bool next_at(struct slice *rest, struct said *value, unsigned depth)
{
    struct slice line;
    int64_t n;
    if (depth >= SENTINEL_DEPTH || !control_reply_take_line(rest, &line) || line.len == 0)
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
    case '|': /* an attribute precedes its value, and holds nothing that weir needs */
        return num_parse(text, &n) && n >= 0 &&
               control_reply_take_counted(rest, type, n, value, depth) &&
               next_at(rest, value, depth + 1);
    case '$':
    case '=':
    case '!':
    case '*':
    case '~':
    case '%':
        return num_parse(text, &n) && control_reply_take_counted(rest, type, n, value, depth);
    case '>': /* a push is never inside another value */
        return depth == 0 && num_parse(text, &n) &&
               control_reply_take_counted(rest, type, n, value, depth);
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

/* ---- servers reported by sentinels ---- */

/* True for a byte of a host name or an IP address, which may have a scope. */
static bool is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr(".-_:%", c) != NULL;
}

bool sentinel_read_address(struct slice host, struct slice port, struct sentinel_server *server)
{
    int64_t number;
    if (host.len == 0 || host.len >= sizeof server->host || !num_parse(port, &number) ||
        number < 1 || number > UINT16_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (host.at[i] == '\0' || !is_host_byte(host.at[i]))
            return false;
    memcpy(server->host, host.at, host.len);
    server->host[host.len] = '\0';
    server->port = (uint16_t)number;
    return true;
}

/* Flags are separated by commas. */
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
    if (list->kind != SAID_LIST || !said_field(list, "ip", &host) ||
        !said_field(list, "port", &port) || !sentinel_read_address(host, port, server))
        return false;
    if (said_field(list, "config-epoch", &text) && num_parse(text, &epoch) && epoch > 0)
        server->epoch = (uint64_t)epoch;
    if (said_field(list, "runid", &text) && text.len < sizeof server->run_id)
        memcpy(server->run_id, text.at, text.len);
    if (said_field(list, "flags", &text)) {
        server->is_failing_over = has_flag(text, "failover_in_progress");
        server->is_down =
            has_flag(text, "s_down") || has_flag(text, "o_down") || has_flag(text, "disconnected");
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

static bool holds(struct slice text, const char *word)
{
    return memmem(text.at, text.len, word, strlen(word)) != NULL;
}

enum sentinel_refusal sentinel_judge_error(struct slice error)
{
    if (control_reply_begins(error, "NOAUTH"))
        return SENTINEL_WANTS_LOGIN;
    if (control_reply_begins(error, "WRONGPASS") || holds(error, "invalid password") ||
        holds(error, "called without any password"))
        return SENTINEL_REFUSES_LOGIN;
    if (control_reply_begins(error, "NOPERM"))
        return SENTINEL_FORBIDS;
    if (holds(error, "No such master"))
        return SENTINEL_KNOWS_NO_NAME;
    if (control_reply_begins(error, "NOPROTO") || holds(error, "nknown command") ||
        holds(error, "nknown sentinel subcommand") || holds(error, "nknown subcommand"))
        return SENTINEL_UNKNOWN;
    return SENTINEL_OTHER;
}

/* ---- the answer to the auth probe ---- */

/* An answer that is neither a number nor an error gives AUTH_PROBE_UNKNOWN. */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data,
                                               size_t n)
{
    size_t used;
    enum scan_result result = reply_scan(&answer->scan, data, n, &used);
    glimpse_feed(&answer->glimpse, data, used);
    if (result == SCAN_MORE)
        return AUTH_PROBE_MORE;
    if (result == SCAN_BAD || used < n)
        return AUTH_PROBE_UNKNOWN;
    if (glimpse_starts(&answer->glimpse, SLICE("-NOAUTH")))
        return AUTH_PROBE_NEEDS_AUTH;
    char type = glimpse_type(&answer->glimpse);
    return type == ':' || type == '-' ? AUTH_PROBE_SERVED : AUTH_PROBE_UNKNOWN;
}
