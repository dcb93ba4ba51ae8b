/*
 * A row of the command table: the properties of one command or subcommand, the lanes it may use,
 * and the cost of a call.
 *
 * A row in a table is immutable except for its cost, which is updated at each poll
 * (command_costs.h). The main thread writes the cost and workers read it, both relaxed. A worker
 * may see `ns` and `calls` of different polls.
 */
#ifndef WEIR_LIMIT_COMMAND_ROW_H
#define WEIR_LIMIT_COMMAND_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COMMAND_NAME_MAX 64

/*
 * What Redis sends back for a command outside MULTI. Inside MULTI, every command gets one +QUEUED
 * or one error.
 */
enum flow {
    FLOW_ONE,       /* exactly one reply */
    FLOW_SUBSCRIBE, /* a frame for each argument, or one error */
    /* a frame for each argument; without arguments one for each subscription, at least one */
    FLOW_UNSUBSCRIBE,
    FLOW_MONITOR,     /* one reply, then status lines without end */
    FLOW_REPLY,       /* CLIENT REPLY: one reply to ON, none to OFF and SKIP */
    FLOW_PASSTHROUGH, /* from now on bytes that are not RESP frames (SYNC, PSYNC, REPLCONF) */
    FLOW_QUIT,        /* one reply, then the connection is closed */
    FLOW_DROP,        /* the connection is closed without a reply (POST, Host:) */
    FLOW_OWN,         /* weir's own command, answered by weir: own.def */
};

/*
 * How a command changes the state of its connection or of the server, as far as weir must track the
 * change.
 */
enum effect {
    EFFECT_NONE,
    EFFECT_AUTH,
    EFFECT_HELLO,
    EFFECT_SELECT,
    EFFECT_NAME,    /* CLIENT SETNAME */
    EFFECT_GETNAME, /* CLIENT GETNAME */
    EFFECT_RESET,
    EFFECT_MULTI,
    EFFECT_EXEC,
    EFFECT_DISCARD,
    EFFECT_WATCH,
    EFFECT_UNWATCH,
    EFFECT_TRACKING, /* CLIENT TRACKING */
    EFFECT_NO_EVICT, /* CLIENT NO-EVICT */
    EFFECT_NO_TOUCH, /* CLIENT NO-TOUCH */
    /* CLIENT SETINFO: name and version of the client's library; RESET keeps them */
    EFFECT_LIBRARY,
    EFFECT_WAIT, /* WAIT, WAITAOF: cover the writes of their own connection */
    /* in no row: a write that is certainly sent to replicas, see front/session/wait_coverage.h */
    EFFECT_WRITE,
    EFFECT_ADMIT,   /* on the server: may change the user of connections without a login */
    EFFECT_PAUSE,   /* on the server: CLIENT PAUSE */
    EFFECT_UNPAUSE, /* on the server: CLIENT UNPAUSE */
    /* no state: COMMAND and its subcommands; weir adds its own commands to the reply */
    EFFECT_COMMAND,
    EFFECT_INFO, /* no state: INFO; in front of a cluster weir adds a section to the reply */
    /* In no row: calls that weir makes itself. */
    /* no state; the reply is discarded, but NOAUTH closes the client */
    EFFECT_UNHEARD,
    /*
     * CLIENT REPLY ON instead of the client's own CLIENT REPLY; the argument is the client's enum
     * reply_word
     */
    EFFECT_REPLY,
    EFFECT_LOGIN,  /* AUTH on a client's own connection */
    EFFECT_ID,     /* HELLO on a client's own connection, for the id in its reply */
    EFFECT_BEGUN,  /* MULTI on a client's own connection to a cluster node: front/session/multi.h */
    EFFECT_LOADED, /* SCRIPT LOAD on a script connection; the argument is the enum script */
};

/* The kind of a command in metrics: the last one that fits. */
enum command_kind {
    KIND_OTHER,
    KIND_READ,
    KIND_WRITE,
    KIND_BLOCKING,
    KIND_SCRIPT,
    KIND_CONTROL,
    KIND_PUBSUB,
    KIND_TX, /* MULTI, EXEC, WATCH ... */
    COMMAND_KINDS
};

/* The flags of `COMMAND` that weir needs. */
enum {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_ADMIN = 1 << 2,
    CMD_PUBSUB = 1 << 3,
    CMD_NOSCRIPT = 1 << 4,
    CMD_BLOCKING = 1 << 5,
    CMD_NO_AUTH = 1 << 6,
    CMD_MODULE = 1 << 7,
    CMD_MOVABLEKEYS = 1 << 8,
    CMD_FAST = 1 << 9,
    CMD_CONTROL = 1 << 10, /* class `control`, weir's own: never refused */
    /* the part of class `control` that libraries send before they log in */
    CMD_HANDSHAKE = 1 << 11,
};

/* What one call costs Redis. */
struct command_cost {
    _Atomic uint32_t ns; /* includes the fixed cost of every call; never 0 in a table */
    /* number of calls behind the last estimate; 0: a default, by the command's flags */
    _Atomic uint32_t calls;
};

struct command {
    char name[COMMAND_NAME_MAX + 1]; /* lower case; a subcommand is "config|get" */
    uint8_t name_len;
    uint8_t flow;      /* enum flow */
    uint8_t effect;    /* enum effect */
    uint8_t keys;      /* enum keys_rule: how the keys are found */
    uint8_t keys_arg;  /* argument of the rule: see keys.def */
    uint8_t kind;      /* enum command_kind */
    uint8_t fanout;    /* enum fanout: the nodes of a cluster that get the command */
    uint8_t join;      /* enum join: how the replies of several nodes become one */
    uint8_t own;       /* 1 + the row in own.def; 0: a command of Redis */
    bool is_shareable; /* may use a shared lane */
    bool blocks;       /* may block in Redis: when the client closes, its lane is closed at once */
    /*
     * must reach Redis even if Redis is busy or paused: a lane for the command is opened with as
     * few commands as possible
     */
    bool is_urgent;
    bool pins; /* the client keeps its private lane until it disconnects */
    /* a client can shape the reply into several frames, or the effect on the lane is unknown */
    bool may_forge;
    /* only reads keys; a replica may answer; false for SCAN, HSCAN, SSCAN and ZSCAN */
    bool reads_keys;
    bool is_pausable;  /* CLIENT PAUSE ... WRITE delays the command */
    bool in_container; /* the name has a '|' */
    bool has_subcommands;
    uint16_t id;   /* dense; 0 is the row of all unknown commands */
    int16_t arity; /* as in COMMAND: a negative number means "at least" */
    uint16_t flags;
    int16_t first_key, last_key, key_step;
    uint64_t categories; /* bit i: command_table_category(table, i) */
    struct command_cost cost;
};

/* True for MULTI, EXEC and DISCARD. The cost of a transaction lies in its other commands. */
static inline bool command_is_bracket(const struct command *command)
{
    return command->effect == EFFECT_MULTI || command->effect == EFFECT_EXEC ||
           command->effect == EFFECT_DISCARD;
}

/* Estimated cost of one call for Redis, in ns. Any thread. */
static inline uint32_t command_cost_ns(const struct command *command)
{
    return atomic_load_explicit(&command->cost.ns, memory_order_relaxed);
}

/* Number of calls behind the estimate; 0: a default, by the command's flags. Any thread. */
static inline uint32_t command_cost_calls(const struct command *command)
{
    return atomic_load_explicit(&command->cost.calls, memory_order_relaxed);
}

#endif
