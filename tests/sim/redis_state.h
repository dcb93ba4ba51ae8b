/*
 * What the parts of the model share: the server, its databases, values, users and connections.
 *
 * Who adds to a struct here frees it in the file named beside it. A connection that is gone for the server (`is_gone`)
 * stays as a shell until its owner calls redis_disconnect.
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

/* A list of strings: the first is at `head` of a ring of `room` places, a power of two. */
struct deque {
    struct text *items; /* heap */
    size_t head, count, room;
};

/* Members by score, then by name; a member's name and score are those of its entry in the dict. */
struct zset {
    struct zmember {
        double score;
        struct dict_entry *entry;
    } * items; /* heap; the first `gap` places are free */
    size_t gap, count, room;
    struct dict by_name; /* whose values are the bits of scores */
};

struct value {
    int64_t expires_ms; /* unix time; NO_EXPIRY */
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
    size_t n_expiring;    /* keys with a time of their own */
    size_t looked_at;     /* the bucket where the search for those that are over goes on */
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
    FLAG_NOT_QUEUED = 1 << 11,    /* carried out inside MULTI */
    FLAG_WHILE_SUBSCRIBED = 1 << 12,
    FLAG_SCRIPT = 1 << 13,     /* keys are told by numkeys */
    FLAG_PUSH_REPLY = 1 << 14, /* what it answers are pushes */
    FLAG_DENYOOM = 1 << 15,
    FLAG_LOADING = 1 << 16, /* carried out while the data is loaded */
    FLAG_STALE = 1 << 17,   /* and by a replica without its master */
    FLAG_CLUSTER = 1 << 18, /* a node of a cluster alone knows it here */
};

struct redis_conn;

struct command {
    const char *name; /* "get", "client|id" */
    const char *flags, *categories;
    void (*run)(struct redis_conn *conn, const struct slice *argv, size_t argc);
    int arity, first_key, last_key, key_step;
    uint32_t since;
    uint32_t bits;       /* enum command_flag */
    uint16_t id;         /* its number in the table */
    uint16_t n_children; /* subcommands, which follow it in the table */
    bool is_child;
    uint64_t calls; /* since the start, or CONFIG RESETSTAT */
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

/* A connection that waits for a key: in the key's list in db->blocked, and one of conn->block.keys. */
struct block_key {
    struct list in_key;
    struct redis_conn *conn;
    struct text name;
};

struct block {
    enum block_kind kind;
    uint64_t due_us;        /* REDIS_NEVER */
    uint64_t since;         /* redis->n_blockings when it began: the order of the waiting */
    struct block_key *keys; /* heap */
    size_t n_keys;
    struct db *db;
    struct text target; /* of a move */
    bool is_move, from_left, to_left;
};

struct queued {
    const struct command *command;
    struct text *words; /* heap */
    size_t n;
};

/* A key that a connection watches: in the key's list in db->watchers, and one of conn->watched. */
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
    struct list in_ready;   /* it may have a command to carry out */
    struct list in_touched; /* its owner is to look at it */
    struct list in_blocked, in_postponed, in_monitors;
    uint64_t id;
    char *peer;
    struct text name, lib_name, lib_version;

    /* what has come, and how far it is read: redis_request.c */
    struct text in;
    size_t in_at;
    int64_t left_words; /* of the request that is being read; 0: its first line is to come */
    int64_t bulk_len;   /* of the word that is being read; -1: its first line is to come */
    struct span {
        size_t at, len;
    } * spans; /* heap; its words that are whole, in `in` */
    size_t n_spans, span_room;
    struct text *inline_words; /* heap; of a request in a line, which are as many as spans */
    struct slice *argv;        /* heap; of a request that is whole */
    size_t argv_room;
    bool is_inline;      /* what comes next is a line, whatever it begins with */
    bool is_whole;       /* a request is read, and not carried out yet */
    bool is_going_on;    /* it keeps its turn */
    bool is_told;        /* on_request has been told of what CLIENT PAUSE holds back */
    bool has_written;    /* something in its turn, which goes out when that is over */
    bool has_replicated; /* a write or a message that replicas are sent */

    struct text out;
    size_t out_taken;
    struct text pushes; /* those that have to wait until the reply is written */

    struct user *user;
    struct db *db;
    const struct command *command, *last_command;
    unsigned protocol;
    bool is_reply_off, is_reply_skip, is_reply_skip_next;
    uint64_t created_us, used_us;
    uint64_t secret_words; /* of the command: a bit for each that MONITOR is not to show */

    /* transactions: redis_multi.c */
    struct queued *queue; /* heap */
    size_t n_queued, queue_room;
    uint32_t queue_bits;  /* of all commands in it */
    uint32_t queue_lacks; /* those that one of them has not */
    struct list watched;

    /* pub/sub: redis_pubsub.c; dicts whose values are the struct sub in the channel's list */
    struct dict channels, patterns, shards;

    /* tracking: redis_tracking.c */
    unsigned tracking; /* enum tracking_flag */
    uint64_t redirect;

    struct block block;
    bool is_authenticated, is_multi, is_dirty_cas, is_dirty_exec, is_deny_blocking;
    bool is_pushing, is_no_evict, is_no_touch, is_monitor;
    bool is_asking;  /* the next command may be for a slot that comes here */
    bool is_script;  /* no peer: what a script calls is carried out for it */
    bool is_closing; /* when its output is taken; nothing more is read */
    bool is_closing_after_command;
    bool is_gone;     /* for the server: killed */
    bool is_orphan;   /* its owner has let go of it while its script runs */
    bool wants_close; /* as its owner is told */
};

/* ---- the server ---- */

struct settings {
    struct text requirepass, notify;
    uint32_t maxclients, databases;
    uint64_t busy_us;
    int64_t bulk_max;
    int64_t memory_max;    /* 0: none */
    uint32_t replicas_min; /* with fewer it takes no writes; there are none */
    bool is_stale_served;  /* a replica answers though its master is away */
};

struct script_state; /* redis_lua.c */
struct cluster;      /* redis_cluster.c */

struct redis {
    struct redis_config config; /* its texts are copies */
    struct settings settings;
    uint32_t version; /* of the Redis it is or says it is */
    uint64_t now_us, started_us, stalled_until_us;
    uint64_t next_id, n_commands, n_blockings, rng[2];
    char run_id[41];

    struct command *commands; /* heap: those that this version has; without a name, those it has not */
    size_t n_commands_known;
    struct dict command_names;

    struct db *dbs;
    struct list users; /* by name */
    struct user *default_user;
    struct list all, ready, touched, blocked, monitors, postponed;
    struct list killed; /* whose owners have not let go of them yet */
    struct dict by_id;
    size_t n_conns, n_blocked;
    uint64_t n_subs;

    struct dict channels, patterns, shards; /* of struct list of struct sub */
    struct list ready_keys;                 /* of struct ready_key: redis_block.c */

    struct dict tracking; /* key: struct tracked, the ids that have read it */
    size_t n_tracking;
    struct list pending_invalid; /* of struct invalid: told after the reply */

    uint64_t pause_until_us; /* 0: no pause */
    bool pause_is_all;
    bool is_replica, is_disk_broken;
    bool is_linked;            /* to its master */
    uint64_t offset, history;  /* of replication; history 0: INFO does not tell them */
    struct text master;        /* of a replica: "host:port" */
    uint64_t loading_until_us; /* what needs data is refused before */
    uint64_t expired_us;       /* when keys were last looked through */

    struct redis_conn *current;      /* whose command is being carried out; NULL: none */
    const struct command *executing; /* the innermost; NULL: none */
    unsigned depth;                  /* of calls within calls */
    struct script_state *lua;
    struct cluster *cluster; /* heap: redis_cluster.c; NULL: it is in none */
    struct dict scripts;     /* SHA-1: struct script */
};

static inline int64_t now_ms(const struct redis *redis)
{
    return (int64_t)(redis->now_us / US_PER_MS);
}

/* A Valkey whose answers are no longer those of the Redis that it says it is. */
static inline bool is_valkey_8(const struct redis *redis)
{
    return redis->config.is_valkey && redis->config.version >= 80000;
}

static inline bool is_at_least(const struct redis *redis, uint32_t version)
{
    return redis->version >= version;
}

#endif
