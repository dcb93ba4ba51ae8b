/* Commands about the server: INFO, CONFIG, TIME, SLOWLOG. */
#include "tests/sim/redis_server.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

static void add_version(struct text *text, uint32_t version)
{
    text_addf(text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

void reply_version(struct redis_conn *conn, bool is_own)
{
    struct text text = {0};
    add_version(&text, is_own ? conn->redis->config.version : conn->redis->version);
    reply_bulk(conn, text_slice(&text));
    text_fini(&text);
}

void cmd_time(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    char digits[24];
    reply_array(conn, 2);
    reply_bulk(conn, text_of_number((int64_t)(conn->redis->now_us / US_PER_S), digits));
    reply_bulk(conn, text_of_number((int64_t)(conn->redis->now_us % US_PER_S), digits));
}

/* ---- INFO ---- */

static void info_server(const struct redis *redis, struct text *out)
{
    bool is_new = is_valkey_8(redis);
    text_add(out, SLICE("# Server\r\nredis_version:"));
    add_version(out, redis->version);
    if (is_new) {
        text_add(out, SLICE("\r\nserver_name:valkey\r\nvalkey_version:"));
        add_version(out, redis->config.version);
    }
    text_addf(
        out,
        "\r\n%s_mode:%s\r\nos:none\r\narch_bits:64\r\nprocess_id:1\r\nrun_id:%s\r\ntcp_port:6379\r\n",
        is_new ? "server" : "redis", redis->config.is_cluster ? "cluster" : "standalone",
        redis->run_id);
    text_addf(out, "server_time_usec:%lu\r\nuptime_in_seconds:%lu\r\n", redis->now_us,
              redis->now_us > redis->started_us ? (redis->now_us - redis->started_us) / US_PER_S
                                                : 0);
}

static void info_clients(const struct redis *redis, struct text *out)
{
    text_addf(
        out,
        "# Clients\r\nconnected_clients:%zu\r\nmaxclients:%u\r\nblocked_clients:%zu\r\ntracking_clients:%zu\r\n",
        redis->n_conns, redis->settings.maxclients, redis->n_blocked, redis->n_tracking);
}

static void info_stats(const struct redis *redis, struct text *out)
{
    text_addf(
        out,
        "# Stats\r\ntotal_commands_processed:%lu\r\npubsub_channels:%zu\r\npubsub_patterns:%zu\r\n",
        redis->n_commands, redis->channels.count, redis->patterns.count);
}

static void info_replication(const struct redis *redis, struct text *out)
{
    const char *role = redis->is_replica ? "slave" : "master";
    text_addf(out, "# Replication\r\nrole:%s\r\nconnected_slaves:0\r\n", role);
    if (redis->history == 0)
        return;
    if (redis->is_replica)
        text_addf(out,
                  "master_link_status:%s\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:%lu\r\n",
                  redis->is_linked ? "up" : "down", redis->offset);
    text_addf(out, "master_replid:%040lu\r\nmaster_repl_offset:%lu\r\n", redis->history,
              redis->offset);
}

static void info_keyspace(const struct redis *redis, struct text *out)
{
    text_add(out, SLICE("# Keyspace\r\n"));
    for (size_t i = 0; i < redis->settings.databases; i++)
        if (redis->dbs[i].keys.count > 0)
            text_addf(out, "db%zu:keys=%zu,expires=%zu,avg_ttl=0\r\n", i, redis->dbs[i].keys.count,
                      redis->dbs[i].n_expiring);
}

/*
 * Fixed times in us, chosen: a fast command, any other command, and the main thread's work for each
 * command.
 */
enum { US_FAST = 1, US_SLOW = 20, US_FIXED = 2 };

static uint64_t usec_of(const struct command *command)
{
    return command->calls * (strstr(command->flags, "fast") != NULL ? US_FAST : US_SLOW);
}

static void info_cpu(const struct redis *redis, struct text *out)
{
    uint64_t usec = redis->n_commands * US_FIXED;
    for (size_t i = 0; i < redis->n_commands_known; i++)
        usec += usec_of(&redis->commands[i]);
    text_addf(out, "# CPU\r\nused_cpu_sys:0.000000\r\nused_cpu_user:%lu.%06lu\r\n", usec / US_PER_S,
              usec % US_PER_S);
    if (is_at_least(redis, 60200))
        text_addf(out,
                  "used_cpu_sys_main_thread:0.000000\r\nused_cpu_user_main_thread:%lu.%06lu\r\n",
                  usec / US_PER_S, usec % US_PER_S);
}

/* Before 7.0 calls of subcommands count for their container. */
static void info_commandstats(const struct redis *redis, struct text *out)
{
    bool is_old = !is_at_least(redis, 70000);
    text_add(out, SLICE("# Commandstats\r\n"));
    for (size_t i = 0; i < redis->n_commands_known; i++) {
        const struct command *command = &redis->commands[i];
        uint64_t calls = command->calls;
        uint64_t usec = usec_of(command);
        for (size_t j = 1; is_old && j <= command->n_children; j++) {
            calls += command[j].calls;
            usec += usec_of(&command[j]);
        }
        if (calls > 0 && !(is_old && command->is_child))
            text_addf(
                out,
                "cmdstat_%s:calls=%lu,usec=%lu,usec_per_call=%.2f,rejected_calls=0,failed_calls=0\r\n",
                command->name, calls, usec, (double)usec / (double)calls);
    }
}

static bool wants_section(const struct slice *argv, size_t argc, const char *name, bool is_default)
{
    bool is_wanted = argc == 1 && is_default;
    for (size_t i = 1; i < argc; i++)
        is_wanted |= text_is(argv[i], name) || text_is(argv[i], "all") ||
                     (is_default && text_is(argv[i], "default")) || text_is(argv[i], "everything");
    return is_wanted;
}

void cmd_info(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    static const struct {
        const char *name;
        void (*write)(const struct redis *redis, struct text *out);
        bool is_default;
    } sections[] = {
        {"server", info_server, true},     {"clients", info_clients, true},
        {"stats", info_stats, true},       {"replication", info_replication, true},
        {"cpu", info_cpu, true},           {"commandstats", info_commandstats, false},
        {"keyspace", info_keyspace, true},
    };
    if (argc > 2 && !is_at_least(conn->redis, 70000)) {
        reply_syntax(conn);
        return;
    }
    struct text out = {0};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (!wants_section(argv, argc, sections[i].name, sections[i].is_default))
            continue;
        if (out.len > 0)
            text_add(&out, SLICE("\r\n"));
        sections[i].write(conn->redis, &out);
    }
    reply_verbatim(conn, text_slice(&out));
    text_fini(&out);
}

/* ---- CONFIG ---- */

enum setting_kind { SETTING_TEXT, SETTING_U32, SETTING_BYTES, SETTING_MS, SETTING_BOOL };

static const struct setting {
    const char *name;
    enum setting_kind kind;
    size_t at; /* offset in struct settings */
    int64_t least;
} settings[] = {
    {"requirepass", SETTING_TEXT, offsetof(struct settings, requirepass), 0},
    {"maxclients", SETTING_U32, offsetof(struct settings, maxclients), 1},
    {"lua-time-limit", SETTING_MS, offsetof(struct settings, busy_us), 0},
    {"busy-reply-threshold", SETTING_MS, offsetof(struct settings, busy_us), 0},
    {"proto-max-bulk-len", SETTING_BYTES, offsetof(struct settings, bulk_max), 1024 * 1024},
    {"maxmemory", SETTING_BYTES, offsetof(struct settings, memory_max), 0},
    {"min-replicas-to-write", SETTING_U32, offsetof(struct settings, replicas_min), 0},
    {"replica-serve-stale-data", SETTING_BOOL, offsetof(struct settings, is_stale_served), 0},
};
#define N_SETTINGS (sizeof settings / sizeof settings[0])

static const struct setting *find_setting(struct slice name)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (text_is(name, settings[i].name))
            return &settings[i];
    return NULL;
}

/* False: the value is invalid for this setting. */
static bool set_setting(struct redis *redis, const struct setting *setting, struct slice value)
{
    char *at = (char *)&redis->settings + setting->at;
    int64_t number = 0;
    if (setting->kind == SETTING_TEXT) {
        text_set((struct text *)(void *)at, value);
        acl_set_requirepass(redis, value);
        return true;
    }
    if (setting->kind == SETTING_BOOL && (text_is(value, "yes") || text_is(value, "no"))) {
        *(bool *)(void *)at = text_is(value, "yes");
        return true;
    }
    if (!text_to_number(value, &number) || number < setting->least)
        return false;
    if (setting->kind == SETTING_U32 && number <= UINT32_MAX)
        *(uint32_t *)(void *)at = (uint32_t)number;
    else if (setting->kind == SETTING_BYTES)
        *(int64_t *)(void *)at = number;
    else if (setting->kind == SETTING_MS)
        *(uint64_t *)(void *)at = (uint64_t)number * US_PER_MS;
    else
        return false;
    return true;
}

static void refuse_setting(struct redis_conn *conn, struct slice name, struct slice value,
                           const char *why)
{
    if (is_at_least(conn->redis, 70000))
        reply_error(conn, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s",
                    SHOWN(name), why);
    else
        reply_error(conn, "ERR Invalid argument '%.*s' for CONFIG SET '%.*s' - %s", SHOWN(value),
                    SHOWN(name), why);
}

void cmd_config_set(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    bool is_new = is_at_least(conn->redis, 70000);
    if (is_new && argc % 2 == 1) {
        reply_syntax(conn);
        return;
    }
    if (!is_new && argc != 4) {
        reply_subcommand(conn, argv);
        return;
    }
    for (size_t i = 2; i < argc; i += 2) {
        const struct setting *setting = find_setting(argv[i]);
        if (setting == NULL) {
            reply_error(conn,
                        is_new ? "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'"
                               : "ERR Unsupported CONFIG parameter: %.*s",
                        SHOWN(argv[i]));
            return;
        }
        if (!set_setting(conn->redis, setting, argv[i + 1])) {
            refuse_setting(conn, argv[i], argv[i + 1],
                           setting->kind == SETTING_BOOL
                               ? "argument must be 'yes' or 'no'"
                               : "argument couldn't be parsed into an integer");
            return;
        }
    }
    reply_ok(conn);
}

/* ---- SLOWLOG: always empty ---- */

void cmd_slowlog_len(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_number(conn, 0);
}
