/* Replies are appended to the output. A header that comes late is inserted. */
#include "tests/sim/redis_reply.h"

#include "tests/sim/redis_commands.h"

void conn_touch(struct redis_conn *conn)
{
    if (list_is_empty(&conn->in_touched))
        list_push(&conn->redis->touched, &conn->in_touched);
}

/*
 * Since 7.2 a push message to the connection of the current command waits for the reply, unless the
 * push is the reply.
 */
static bool must_wait(const struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    return conn->is_pushing && conn == redis->current && redis->executing != NULL &&
           is_at_least(redis, 70200) && !(redis->executing->bits & FLAG_PUSH_REPLY);
}

void reply_raw(struct redis_conn *conn, struct slice bytes)
{
    bool is_silent = (conn->is_reply_off || conn->is_reply_skip) && !conn->is_pushing;
    if (is_silent || conn->is_gone || conn->is_closing)
        return;
    if (must_wait(conn)) {
        text_add(&conn->pushes, bytes);
        return;
    }
    text_add(&conn->out, bytes);
    conn->has_written = true;
    if (!conn->is_script)
        conn_touch(conn);
}

static size_t header_of(char *room, char type, int64_t number)
{
    char digits[24];
    struct slice text = text_of_number(number, digits);
    room[0] = type;
    memcpy(room + 1, text.at, text.len);
    room[1 + text.len] = '\r';
    room[2 + text.len] = '\n';
    return text.len + 3;
}

static void reply_header(struct redis_conn *conn, char type, int64_t number)
{
    char room[32];
    reply_raw(conn, slice_of(room, header_of(room, type, number)));
}

void reply_status(struct redis_conn *conn, const char *status)
{
    reply_raw(conn, SLICE("+"));
    reply_raw(conn, slice_str(status));
    reply_raw(conn, SLICE("\r\n"));
}

void reply_ok(struct redis_conn *conn)
{
    reply_raw(conn, SLICE("+OK\r\n"));
}

void reply_number(struct redis_conn *conn, int64_t number)
{
    reply_header(conn, ':', number);
}

void reply_bulk(struct redis_conn *conn, struct slice text)
{
    reply_header(conn, '$', (int64_t)text.len);
    reply_raw(conn, text);
    reply_raw(conn, SLICE("\r\n"));
}

void reply_word(struct redis_conn *conn, const char *text)
{
    reply_bulk(conn, slice_str(text));
}

void reply_null(struct redis_conn *conn)
{
    reply_raw(conn, conn->protocol == 3 ? SLICE("_\r\n") : SLICE("$-1\r\n"));
}

void reply_null_array(struct redis_conn *conn)
{
    reply_raw(conn, conn->protocol == 3 ? SLICE("_\r\n") : SLICE("*-1\r\n"));
}

void reply_array(struct redis_conn *conn, size_t n)
{
    reply_header(conn, '*', (int64_t)n);
}

void reply_map(struct redis_conn *conn, size_t n_pairs)
{
    if (conn->protocol == 3)
        reply_header(conn, '%', (int64_t)n_pairs);
    else
        reply_header(conn, '*', (int64_t)n_pairs * 2);
}

void reply_set(struct redis_conn *conn, size_t n)
{
    reply_header(conn, conn->protocol == 3 ? '~' : '*', (int64_t)n);
}

void reply_push(struct redis_conn *conn, size_t n)
{
    reply_header(conn, conn->protocol == 3 ? '>' : '*', (int64_t)n);
}

void reply_double(struct redis_conn *conn, double number)
{
    char room[64];
    struct slice text = text_of_score(number, is_at_least(conn->redis, 70200), room);
    if (conn->protocol != 3) {
        reply_bulk(conn, text);
        return;
    }
    reply_raw(conn, SLICE(","));
    reply_raw(conn, text);
    reply_raw(conn, SLICE("\r\n"));
}

void reply_verbatim(struct redis_conn *conn, struct slice text)
{
    if (conn->protocol != 3) {
        reply_bulk(conn, text);
        return;
    }
    reply_header(conn, '=', (int64_t)text.len + 4);
    reply_raw(conn, SLICE("txt:"));
    reply_raw(conn, text);
    reply_raw(conn, SLICE("\r\n"));
}

void reply_error(struct redis_conn *conn, const char *format, ...)
{
    struct text line = {0};
    text_add(&line, SLICE("-"));
    va_list args;
    va_start(args, format);
    text_addv(&line, format, args);
    va_end(args);
    while (line.len > 0 && (line.at[line.len - 1] == '\r' || line.at[line.len - 1] == '\n'))
        line.len--;
    for (size_t i = 0; i < line.len; i++)
        if (line.at[i] == '\r' || line.at[i] == '\n')
            line.at[i] = ' ';
    text_add(&line, SLICE("\r\n"));
    reply_raw(conn, text_slice(&line));
    text_fini(&line);
}

void reply_syntax(struct redis_conn *conn)
{
    reply_error(conn, "ERR syntax error");
}

void reply_wrong_type(struct redis_conn *conn)
{
    reply_error(conn, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void reply_not_integer(struct redis_conn *conn)
{
    reply_error(conn, "ERR value is not an integer or out of range");
}

void reply_arity(struct redis_conn *conn)
{
    reply_error(conn, "ERR wrong number of arguments for '%s' command",
                command_name(conn->redis, conn->command));
}

/* ---- late headers ---- */

size_t reply_mark(const struct redis_conn *conn)
{
    return conn->out.len;
}

void reply_insert(struct redis_conn *conn, size_t mark, struct slice bytes)
{
    if (conn->is_reply_off || conn->is_reply_skip || conn->is_gone || conn->is_closing)
        return;
    text_insert(&conn->out, mark, bytes);
    if (!conn->is_script)
        conn_touch(conn);
}

static void insert_header(struct redis_conn *conn, size_t mark, char type, size_t n)
{
    char room[32];
    reply_insert(conn, mark, slice_of(room, header_of(room, type, (int64_t)n)));
}

void reply_array_at(struct redis_conn *conn, size_t mark, size_t n)
{
    insert_header(conn, mark, '*', n);
}

void reply_map_at(struct redis_conn *conn, size_t mark, size_t n_pairs)
{
    bool is_map = conn->protocol == 3;
    insert_header(conn, mark, is_map ? '%' : '*', is_map ? n_pairs : n_pairs * 2);
}

void reply_set_at(struct redis_conn *conn, size_t mark, size_t n)
{
    insert_header(conn, mark, conn->protocol == 3 ? '~' : '*', n);
}

/* ---- push messages ---- */

bool push_begin(struct redis_conn *conn)
{
    bool was_pushing = conn->is_pushing;
    conn->is_pushing = true;
    return was_pushing;
}

void push_end(struct redis_conn *conn, bool was_pushing)
{
    conn->is_pushing = was_pushing;
}
