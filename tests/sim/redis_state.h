/*
 * The data of the model: the server, its databases, values, users and connections.
 *
 * The file named beside a field frees what the field points at. A connection closed by the server
 * (`is_gone`) stays allocated until its owner calls redis_disconnect.
 */
#ifndef WEIR_SIM_REDIS_STATE_H
#define WEIR_SIM_REDIS_STATE_H

#include "base/list.h"
#include "tests/sim/redis.h"
#include "tests/sim/redis_dict.h"
#include "tests/sim/redis_text.h"

#define US_PER_MS 1000
#define US_PER_S 1000000
#define NO_EXPIRY INT64_MAX

/* ---- values: redis_keys.c ---- */

enum value_type { VALUE_STRING, VALUE_LIST, VALUE_ZSET };

/* A list of strings: a ring buffer of `room` elements, a power of two; the first is at `head`. */
struct deque {
    struct text *items; /* heap */
    size_t head, count, room;
};

/* Members sorted by score, then by name. The name and the score are also in the dict entry. */
struct zset {
    struct zmember {
        double score;
        struct dict_entry *entry;
    } * items; /* heap; the first `gap` elements are free */
    size_t gap, count, room;
    struct dict by_name; /* values are the bits of scores */
};

struct value {
    int64_t expires_ms; /* Unix time; NO_EXPIRY */
    enum value_type type;
    union {
        struct text string;
        struct deque list;
        struct zset zset;
    };
};

struct db {
    struct dict keys;     /* of struct value */
    struct dict watchers; /* of struct list of struct watch: redis_multi.c */
    struct dict blocked;  /* of struct list of struct block_key: redis_block.c */
    size_t n_expiring;    /* keys with an expiry */
    size_t looked_at;     /* bucket where the search for expired keys goes on */
    unsigned index;
};

/* ---- commands: redis_commands.c ---- */

enum command_flag {
    FLAG_WRITE = 1 << 0,
    FLAG_READONLY = 1 << 1,
    FLAG_ADMIN = 1 << 2,
    FLAG_PUBSUB = 1 << 3,
    FLAG_NOSCRIPT = 1 << 4,
    FLAG_BLOCKING = 1 << 5,
    FLAG_NO_AUTH = 1 << 6,
    FLAG_ALLOW_BUSY = 1 << 7,
    FLAG_SKIP_MONITOR = 1 << 8,
    FLAG_NO_MULTI = 1 << 9,
    FLAG_MAY_REPLICATE = 1 << 10, /* not in COMMAND's flags: EVAL, PUBLISH ... */
    FLAG_NOT_QUEUED = 1 << 11,    /* executed inside MULTI */
    FLAG_WHILE_SUBSCRIBED = 1 << 12,
    FLAG_SCRIPT = 1 << 13,     /* keys are given by numkeys */
    FLAG_PUSH_REPLY = 1 << 14, /* replies are push messages */
    FLAG_DENYOOM = 1 << 15,
    FLAG_LOADING = 1 << 16, /* executed while the data is loaded */
    FLAG_STALE = 1 << 17,   /* executed by a replica without its master */
    FLAG_CLUSTER = 1 << 18, /* known only to a node of a cluster */
};

struct redis_conn;

struct command {
    const char *name; /* "get", "client|id" */
    const char *flags, *categories;
    void (*run)(struct redis_conn *conn, const struct slice *argv, size_t argc);
    int arity, first_key, last_key, key_step;
    uint32_t since;
    uint32_t bits;       /* enum command_flag */
    uint16_t id;         /* index in the table */
    uint16_t n_children; /* subcommands, which follow in the table */
    bool is_child;
    uint64_t calls; /* since the start */
};

/* ---- users: redis_acl.c ---- */

struct user {
    struct list in_users;
    char *name;
    struct text *passwords; /* SHA-256 in hex */
    size_t n_passwords;
    bool is_on, is_nopass;
};

/* ---- connections ---- */

enum block_kind { BLOCK_NONE, BLOCK_LIST, BLOCK_WAIT, BLOCK_PAUSE, BLOCK_SCRIPT };

/*
 * A key with a blocked connection: in the key's list in db->blocked, and an element of
 * conn->block.keys.
 */
struct block_key {
    struct list in_key;
    struct redis_conn *conn;
    struct text name;
};

struct block {
    enum block_kind kind;
    uint64_t due_us;        /* REDIS_NEVER */
    uint64_t since;         /* redis->n_blockings at the start: the order of waiting */
    struct block_key *keys; /* heap */
    size_t n_keys;
    struct db *db;
    struct text target; /* of a BLMOVE */
    bool is_move, from_left, to_left;
};

struct queued {
    const struct command *command;
    struct text *words; /* heap */
    size_t n;
};

/* A watched key: in the key's list in db->watchers, and in conn->watched. */
struct watch {
    struct list in_key, in_conn;
    struct redis_conn *conn;
    struct db *db;
    bool was_expired;
    size_t len;
    char name[];
};

enum tracking_flag {
    TRACKING_ON = 1 << 0,
    TRACKING_OPTIN = 1 << 1,
    TRACKING_OPTOUT = 1 << 2,
    TRACKING_NOLOOP = 1 << 3,
    TRACKING_CACHING = 1 << 4,
    TRACKING_BROKEN = 1 << 5,
};

struct redis_conn {
    struct redis *redis;
    void *owner;
    struct list in_all;     /* by age */
    struct list in_ready;   /* the connection may have a command to execute */
    struct list in_touched; /* to be returned by redis_touched */
    struct list in_blocked, in_postponed, in_monitors;
    uint64_t id;
    char *peer;
    struct text name, lib_name, lib_version;

    /* input, and how far it is parsed: redis_request.c */
    struct text in;
    size_t in_at;
    int64_t left_words; /* of the request being parsed; 0: its header is to come */
    int64_t bulk_len;   /* of the bulk string being parsed; -1: its header is to come */
    struct span {
        size_t at, len;
    } * spans; /* heap; complete words, as offsets in `in` */
    size_t n_spans, span_room;
    struct text *inline_words; /* heap; words of an inline request, as many as spans */
    struct slice *argv;        /* heap; words of a complete request */
    size_t argv_room;
    bool is_inline;      /* the next request is inline, whatever it begins with */
    bool is_whole;       /* a request is parsed, and not executed yet */
    bool is_going_on;    /* stays in front of the ready list */
    bool is_told;        /* on_request was called for a command that CLIENT PAUSE holds back */
    bool has_written;    /* has written output since it was chosen, which goes out afterwards */
    bool has_replicated; /* has sent a write or a message to replicas */

    struct text out;
    size_t out_taken;
    struct text pushes; /* push messages that wait for the reply */

    struct user *user;
    struct db *db;
    const struct command *command, *last_command;
    unsigned protocol;
    bool is_reply_off, is_reply_skip, is_reply_skip_next;
    uint64_t created_us, used_us;
    uint64_t secret_words; /* one bit for each word of the command that MONITOR must not show */

    /* transactions: redis_multi.c */
    struct queued *queue; /* heap */
    size_t n_queued, queue_room;
    uint32_t queue_bits;  /* union of the bits of all queued commands */
    uint32_t queue_lacks; /* bits that some queued command lacks */
    struct list watched;

    /* pub/sub: redis_pubsub.c; values are the struct sub in the channel's list */
    struct dict channels, patterns, shards;

    /* tracking: redis_tracking.c */
    unsigned tracking; /* enum tracking_flag */
    uint64_t redirect;

    struct block block;
    bool is_authenticated, is_multi, is_dirty_cas, is_dirty_exec, is_deny_blocking;
    bool is_pushing, is_no_evict, is_no_touch, is_monitor;
    bool is_asking;  /* the next command may use an importing slot */
    bool is_script;  /* has no peer; executes the commands of a script */
    bool is_closing; /* closes once its output is taken; nothing more is parsed */
    bool is_closing_after_command;
    bool is_gone;     /* closed by the server */
    bool is_orphan;   /* disconnected by its owner while its script runs */
    bool wants_close; /* result of redis_wants_close */
};

/* ---- the server ---- */

struct settings {
    struct text requirepass, notify;
    uint32_t maxclients, databases;
    uint64_t busy_us;
    int64_t bulk_max;
    int64_t memory_max;    /* 0: no limit */
    uint32_t replicas_min; /* with fewer replicas writes are refused; there are none */
    bool is_stale_served;  /* a replica without its master answers */
};

struct script_state; /* redis_lua.c */
struct cluster;      /* redis_cluster.c */

struct redis {
    struct redis_config config; /* texts are copies */
    struct settings settings;
    uint32_t version; /* version of Redis, or the one that Valkey reports */
    uint64_t now_us, started_us, stalled_until_us;
    uint64_t next_id, n_commands, n_blockings, rng[2];
    char run_id[41];

    struct command *commands; /* heap: a copy of the table for this version */
    size_t n_commands_known;
    struct dict command_names;

    struct db *dbs;
    struct list users; /* sorted by name */
    struct user *default_user;
    struct list all, ready, touched, blocked, monitors, postponed;
    struct list killed; /* closed, and not disconnected by their owners yet */
    struct dict by_id;
    size_t n_conns, n_blocked;
    uint64_t n_subs;

    struct dict channels, patterns, shards; /* of struct list of struct sub */
    struct list ready_keys;                 /* of struct ready_key: redis_block.c */

    struct dict tracking; /* key to struct tracked: the ids that have read it */
    size_t n_tracking;
    struct list pending_invalid; /* of struct invalid, sent after the reply */

    uint64_t pause_until_us; /* 0: no pause */
    bool pause_is_all;
    bool is_replica, is_disk_broken;
    bool is_linked;            /* the link to its master is up */
    uint64_t offset, history;  /* of replication; history 0: not shown in INFO */
    struct text master;        /* of a replica: "host:port" */
    uint64_t loading_until_us; /* commands that need data are refused before */
    uint64_t expired_us;       /* when some keys were last checked for expiry */

    struct redis_conn *current;      /* the connection of the command being executed; NULL: none */
    const struct command *executing; /* the innermost command; NULL: none */
    unsigned depth;                  /* of nested commands */
    struct script_state *lua;
    struct cluster *cluster; /* heap: redis_cluster.c; NULL: no cluster */
    struct dict scripts;     /* SHA-1 to struct script */
};

static inline int64_t now_ms(const struct redis *redis)
{
    return (int64_t)(redis->now_us / US_PER_MS);
}

/* True for a Valkey with replies that differ from those of the Redis version it reports. */
static inline bool is_valkey_8(const struct redis *redis)
{
    return redis->config.is_valkey && redis->config.version >= 80000;
}

static inline bool is_at_least(const struct redis *redis, uint32_t version)
{
    return redis->version >= version;
}

#endif
