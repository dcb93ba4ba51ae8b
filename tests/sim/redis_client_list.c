/* CLIENT subcommands about other connections: LIST, KILL, UNBLOCK, PAUSE. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_client.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_pubsub.h"

/* ---- LIST ---- */

static void add_flags(struct text *line, const struct redis_conn *conn)
{
    const struct {
        bool is;
        char letter;
    } flags[] = {
        {conn->is_monitor, 'O'},
        {pubsub_is_listening(conn), 'P'},
        {conn->is_multi, 'x'},
        {conn->block.kind != BLOCK_NONE, 'b'},
        {(conn->tracking & TRACKING_ON) != 0, 't'},
        {(conn->tracking & TRACKING_BROKEN) != 0, 'R'},
        {conn->is_dirty_cas, 'd'},
        {conn->is_closing, 'c'},
        {conn->peer[0] == '/', 'U'},
        {conn->is_no_evict, 'e'},
        {conn->is_no_touch, 'T'},
    };
    size_t len = line->len;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].is)
            text_add(line, slice_of(&flags[i].letter, 1));
    if (line->len == len)
        text_add(line, SLICE("N"));
}

static size_t count_watched(const struct redis_conn *conn)
{
    size_t n = 0;
    for (struct list *at = conn->watched.next; at != &conn->watched; at = at->next)
        n++;
    return n;
}

/* Fields of memory and sockets show the values of a connection without either. */
static void add_line(struct text *line, const struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    bool is_old = !is_at_least(redis, 70000);
    text_addf(line, "id=%lu addr=%s laddr=%s fd=8 name=", conn->id, conn->peer,
              conn->peer[0] == '/' ? conn->peer : "127.0.0.1:6379");
    text_add(line, text_slice(&conn->name));
    text_addf(line, " age=%lu idle=%lu flags=", (redis->now_us - conn->created_us) / US_PER_S,
              (redis->now_us - conn->used_us) / US_PER_S);
    add_flags(line, conn);
    text_addf(line, " db=%u sub=%zu psub=%zu", conn->db->index, conn->channels.count,
              conn->patterns.count);
    if (!is_old)
        text_addf(line, " ssub=%zu", conn->shards.count);
    text_addf(line, " multi=%ld", conn->is_multi ? (long)conn->n_queued : -1L);
    if (redis->config.is_valkey ? redis->config.version >= 80000 : redis->config.version >= 70400)
        text_addf(line, " watch=%zu", count_watched(conn));
    text_addf(line, " qbuf=%zu qbuf-free=0 argv-mem=0", conn->in.len - conn->in_at);
    if (!is_old)
        text_add(line, SLICE(" multi-mem=0 rbs=1024 rbp=0"));
    text_addf(line, " obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=%s redir=%ld",
              conn->last_command != NULL ? command_name(redis, conn->last_command) : "NULL",
              conn->user->name, conn->tracking & TRACKING_ON ? (long)conn->redirect : -1L);
    if (!is_old)
        text_addf(line, " resp=%u", conn->protocol);
    if (is_at_least(redis, 70200))
        text_addf(line, " lib-name=%.*s lib-ver=%.*s", (int)conn->lib_name.len, conn->lib_name.at,
                  (int)conn->lib_version.len, conn->lib_version.at);
    if (is_valkey_8(redis))
        text_add(line, SLICE(" tot-net-in=0 tot-net-out=0 tot-cmds=0"));
    text_add(line, SLICE("\n"));
}

void cmd_client_info(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    struct text line = {0};
    add_line(&line, conn);
    reply_verbatim(conn, text_slice(&line));
    text_fini(&line);
}

enum client_type { CLIENT_NORMAL, CLIENT_PUBSUB, CLIENT_REPLICA, CLIENT_MASTER, CLIENT_UNKNOWN };

static enum client_type type_of_word(struct slice word)
{
    static const struct {
        const char *word;
        enum client_type type;
    } words[] = {{"normal", CLIENT_NORMAL},
                 {"slave", CLIENT_REPLICA},
                 {"replica", CLIENT_REPLICA},
                 {"pubsub", CLIENT_PUBSUB},
                 {"master", CLIENT_MASTER}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (text_is(word, words[i].word))
            return words[i].type;
    return CLIENT_UNKNOWN;
}

static enum client_type type_of(const struct redis_conn *conn)
{
    return pubsub_is_listening(conn) ? CLIENT_PUBSUB : CLIENT_NORMAL;
}

static bool read_type(struct redis_conn *conn, struct slice word, enum client_type *type)
{
    *type = type_of_word(word);
    if (*type == CLIENT_UNKNOWN)
        reply_error(conn, "ERR Unknown client type '%.*s'", SHOWN(word));
    return *type != CLIENT_UNKNOWN;
}

static bool list_ids(struct redis_conn *conn, const struct slice *ids, size_t n, struct text *lines)
{
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        if (!text_to_number(ids[i], &id)) {
            reply_error(conn, "ERR Invalid client ID");
            return false;
        }
        const struct redis_conn *other = client_by_id(conn->redis, (uint64_t)id);
        if (other != NULL)
            add_line(lines, other);
    }
    return true;
}

void cmd_client_list(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct text lines = {0};
    enum client_type type = CLIENT_UNKNOWN;
    bool is_by_id = argc > 3 && text_is(argv[2], "id");
    bool is_by_type = argc == 4 && text_is(argv[2], "type");
    if (!is_by_id && !is_by_type && argc != 2) {
        reply_syntax(conn);
        return;
    }
    bool is_good = is_by_id ? list_ids(conn, argv + 3, argc - 3, &lines)
                            : !is_by_type || read_type(conn, argv[3], &type);
    for (struct list *at = conn->redis->all.next; at != &conn->redis->all && !is_by_id;
         at = at->next) {
        const struct redis_conn *other = container_of(at, struct redis_conn, in_all);
        if (type == CLIENT_UNKNOWN || type_of(other) == type)
            add_line(&lines, other);
    }
    if (is_good)
        reply_verbatim(conn, text_slice(&lines));
    text_fini(&lines);
}

/* ---- KILL, UNBLOCK, PAUSE ---- */

struct kill_wish {
    struct slice addr, laddr; /* at NULL: any */
    uint64_t id;
    const struct user *user;
    enum client_type type;
    bool spares_me;
};

static bool read_id(struct redis_conn *conn, struct slice word, uint64_t *id)
{
    int64_t number = 0;
    bool is_number = text_to_number(word, &number);
    if (!is_at_least(conn->redis, 70000)) { /* where 0 matches every client */
        *id = (uint64_t)number;
        if (!is_number)
            reply_not_integer(conn);
        return is_number;
    }
    if (!is_number || number < 1) {
        reply_error(conn, "ERR client-id should be greater than 0");
        return false;
    }
    *id = (uint64_t)number;
    return true;
}

static bool read_kill_pair(struct redis_conn *conn, struct slice option, struct slice value,
                           struct kill_wish *wish)
{
    if (text_is(option, "id"))
        return read_id(conn, value, &wish->id);
    if (text_is(option, "type"))
        return read_type(conn, value, &wish->type);
    if (text_is(option, "addr") || text_is(option, "laddr")) {
        *(text_is(option, "addr") ? &wish->addr : &wish->laddr) = value;
        return true;
    }
    if (text_is(option, "user")) {
        wish->user = acl_find(conn->redis, value);
        if (wish->user == NULL)
            reply_error(conn, "ERR No such user '%.*s'", SHOWN(value));
        return wish->user != NULL;
    }
    if (text_is(option, "skipme") && (text_is(value, "yes") || text_is(value, "no"))) {
        wish->spares_me = text_is(value, "yes");
        return true;
    }
    reply_syntax(conn);
    return false;
}

static bool is_meant(const struct redis_conn *other, const struct redis_conn *me,
                     const struct kill_wish *wish)
{
    if (wish->addr.at != NULL && !slice_eq(text_upto_nul(wish->addr), slice_str(other->peer)))
        return false;
    if (wish->laddr.at != NULL)
        return false; /* the model has no local address */
    if (wish->id != 0 && other->id != wish->id)
        return false;
    if (wish->user != NULL && other->user != wish->user)
        return false;
    if (wish->type != CLIENT_UNKNOWN && type_of(other) != wish->type)
        return false;
    return other != me || !wish->spares_me;
}

static int64_t kill_all(struct redis_conn *conn, const struct kill_wish *wish, bool *is_me)
{
    int64_t n = 0;
    struct list *all = &conn->redis->all;
    for (struct list *at = all->next, *next = at->next; at != all; at = next, next = at->next) {
        struct redis_conn *other = container_of(at, struct redis_conn, in_all);
        if (!is_meant(other, conn, wish))
            continue;
        n++;
        if (other == conn)
            *is_me = true;
        else
            conn_kill(other);
    }
    return n;
}

void cmd_client_kill(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct kill_wish wish = {.type = CLIENT_UNKNOWN, .spares_me = argc > 3};
    if (argc == 3)
        wish.addr = argv[2];
    for (size_t i = 2; i < argc && argc > 3; i += 2) {
        if (i + 1 == argc) {
            reply_syntax(conn);
            return;
        }
        if (!read_kill_pair(conn, argv[i], argv[i + 1], &wish))
            return;
    }
    bool is_me = false;
    int64_t n = kill_all(conn, &wish, &is_me);
    if (argc > 3)
        reply_number(conn, n);
    else if (n > 0)
        reply_ok(conn);
    else
        reply_error(conn, "ERR No such client");
    conn->is_closing |= is_me;
}

void cmd_client_unblock(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t id;
    bool is_error = argc == 4 && text_is(argv[3], "error");
    if (argc > 4) {
        reply_subcommand(conn, argv);
        return;
    }
    if (argc == 4 && !is_error && !text_is(argv[3], "timeout")) {
        reply_error(conn, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    }
    if (!arg_number(conn, argv[2], &id))
        return;
    struct redis_conn *other = client_by_id(conn->redis, (uint64_t)id);
    bool waits =
        other != NULL && (other->block.kind == BLOCK_LIST || other->block.kind == BLOCK_WAIT);
    if (waits && is_error) {
        reply_error(other, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
        block_end(other);
    } else if (waits) {
        block_time_out(other);
    }
    reply_number(conn, waits);
}

void cmd_client_pause(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    uint64_t due_us;
    bool is_all = argc == 3 || text_is(argv[3], "all");
    if (argc > 4) {
        reply_subcommand(conn, argv);
        return;
    }
    if (!is_all && !text_is(argv[3], "write")) {
        reply_error(conn, "ERR CLIENT PAUSE mode must be WRITE or ALL");
        return;
    }
    if (!arg_timeout(conn, argv[2], US_PER_MS, &due_us))
        return;
    if (due_us == REDIS_NEVER) /* due_us for a time of 0 */
        due_us = redis->now_us;
    redis->pause_is_all |= is_all;
    if (due_us > redis->pause_until_us)
        redis->pause_until_us = due_us;
    reply_ok(conn);
}

void cmd_client_unpause(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    block_end_pause(conn->redis);
    reply_ok(conn);
}
