#include "tests/sim/redis_monitor.h"

#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

static void add_quoted(struct text *line, struct slice word)
{
    static const char escaped[] = "\\\"\n\r\t\a\b";
    static const char letters[] = "\\\"nrtab";
    text_add(line, SLICE("\""));
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.at[i];
        const char *at = c != '\0' ? strchr(escaped, c) : NULL;
        if (at != NULL)
            text_addf(line, "\\%c", letters[at - escaped]);
        else if (c >= ' ' && c <= '~')
            text_add(line, slice_of(word.at + i, 1));
        else
            text_addf(line, "\\x%02x", c);
    }
    text_add(line, SLICE("\""));
}

/* The path of a Unix socket as "unix:/path"; CLIENT LIST has "/path:0". */
static void add_address(struct text *line, const char *peer)
{
    size_t len = strlen(peer);
    if (peer[0] == '/')
        text_addf(line, "unix:%.*s", (int)(len - 2), peer);
    else
        text_add(line, slice_of(peer, len));
}

void monitor_feed(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    if (list_is_empty(&redis->monitors))
        return;
    struct text line = {0};
    text_addf(&line, "+%lu.%06lu [%u ", redis->now_us / US_PER_S, redis->now_us % US_PER_S,
              conn->db->index);
    add_address(&line, conn->peer);
    text_add(&line, SLICE("]"));
    for (size_t i = 0; i < argc; i++) {
        text_add(&line, SLICE(" "));
        add_quoted(&line, i < 64 && (conn->secret_words >> i & 1) ? SLICE("(redacted)") : argv[i]);
    }
    text_add(&line, SLICE("\r\n"));
    for (struct list *at = redis->monitors.next; at != &redis->monitors; at = at->next)
        reply_raw(container_of(at, struct redis_conn, in_monitors), text_slice(&line));
    text_fini(&line);
}

void cmd_monitor(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    if (conn->is_deny_blocking) {
        reply_error(conn, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    if (conn->is_monitor)
        return;
    conn->is_monitor = true;
    list_push(&conn->redis->monitors, &conn->in_monitors);
    reply_ok(conn);
}
