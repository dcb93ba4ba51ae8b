/*
 * A row of the command table: what one command or subcommand is, which lanes it may use, what a call costs.
 *
 * Immutable once in a table but for the cost, which Redis tells again and again (command_costs.h): the main
 * thread writes it, workers read it, both relaxed. A cost may be seen beside the calls of another poll.
 */
#ifndef WEIR_LIMIT_COMMAND_ROW_H
#define WEIR_LIMIT_COMMAND_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COMMAND_NAME_MAX 64

/* What Redis sends back for a command outside MULTI (inside, everything gets one +QUEUED or one error). */
enum flow {
    FLOW_ONE,         /* exactly one reply */
    FLOW_SUBSCRIBE,   /* a frame for each argument, or one error */
    FLOW_UNSUBSCRIBE, /* a frame for each argument; without arguments one for each subscription, at least one */
    FLOW_MONITOR,     /* one reply, then status lines without end */
    FLOW_REPLY,       /* CLIENT REPLY: one reply to ON, none to OFF and SKIP */
    FLOW_RAW,         /* from now on bytes that are no RESP frames (SYNC, PSYNC, REPLCONF) */
    FLOW_QUIT,        /* one reply, then the connection is closed */
    FLOW_DROP,        /* the connection is closed without a reply (POST, Host:) */
    FLOW_OWN,         /* weir's own command, answered by weir: own.def */
};

/* What a command does to the state of its connection or of the server, as far as weir must follow it. */
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
    EFFECT_LIBRARY,  /* CLIENT SETINFO: the name and version of the client's library; RESET keeps them */
    EFFECT_WAIT,     /* WAIT, WAITAOF: about the writes of its own connection */
    EFFECT_WRITE,    /* in no row: a write that is certainly sent to replicas, see front/session/wait_coverage.h */
    EFFECT_ADMIT,    /* on the server: may change which user connections that do not log in are */
    EFFECT_PAUSE,    /* on the server: CLIENT PAUSE */
    EFFECT_UNPAUSE,  /* on the server: CLIENT UNPAUSE */
    EFFECT_COMMAND,  /* no state: COMMAND and its subcommands, to whose replies weir adds its own commands */
    EFFECT_INFO,     /* no state: INFO: weir adds a section to its reply in front of a cluster */
    /* In no row: of calls that weir makes itself. */
    EFFECT_UNHEARD, /* none, but its answer is thrown away: was the client let in at all? */
    EFFECT_REPLY,   /* CLIENT REPLY ON in place of the client's own CLIENT REPLY; the argument is its enum reply_word */
    EFFECT_LOGIN,   /* AUTH on a client's own connection */
    EFFECT_ID,      /* HELLO on a client's own connection, for the id that it tells */
    EFFECT_BEGUN,   /* MULTI on a client's own connection to a node of a cluster: front/session/multi.h */
    EFFECT_LOADED,  /* SCRIPT LOAD on a script connection; the argument is the enum script */
};

/* The kind of a command in metrics: the last of these that fits. */
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

/* Flags as `COMMAND` names them, those that weir needs. */
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
    CMD_CONTROL = 1 << 10,   /* weir's own class `control`: never refused */
    CMD_HANDSHAKE = 1 << 11, /* of those, what libraries send before they log in */
};

/* What one call costs Redis. */
struct command_cost {
    _Atomic uint32_t ns;    /* with the fixed part that every call costs; never 0 once in a table */
    _Atomic uint32_t calls; /* as many told it last; 0: a default, by the command's flags */
};

struct command {
    char name[COMMAND_NAME_MAX + 1]; /* lower case; a subcommand is "config|get" */
    uint8_t name_len;
    uint8_t flow;      /* enum flow */
    uint8_t effect;    /* enum effect */
    uint8_t keys;      /* enum keys_rule: how its keys are found */
    uint8_t keys_arg;  /* the rule's argument, see keys.def */
    uint8_t kind;      /* enum command_kind */
    uint8_t fanout;    /* enum fanout: to which nodes of a cluster it goes */
    uint8_t join;      /* enum join: how their replies become one */
    uint8_t own;       /* 1 + its row in own.def; 0: a command of Redis */
    bool is_shareable; /* may travel on a shared lane */
    bool blocks;       /* may block in Redis: when the client goes away its lane is closed at once */
    bool is_urgent; /* must reach a Redis that is busy or paused: its lane is opened with as few commands as possible */
    bool pins;      /* the client keeps its private lane until it disconnects */
    bool may_forge; /* a client can shape its reply into several frames, or its effect on the lane is unknown */
    bool reads_keys;   /* reads keys and does nothing else; a replica may answer it: it is not SCAN or its kin */
    bool is_pausable;  /* CLIENT PAUSE ... WRITE delays it */
    bool in_container; /* name has a '|' */
    bool has_subcommands;
    uint16_t id;   /* dense, 0 is the row of every unknown command */
    int16_t arity; /* as COMMAND gives it: negative is "at least" */
    uint16_t flags;
    int16_t first_key, last_key, key_step;
    uint64_t categories; /* bit i: command_table_category(table, i) */
    struct command_cost cost;
};

/* MULTI, EXEC or DISCARD: what it costs is in what stands between them. */
static inline bool command_is_bracket(const struct command *command)
{
    return command->effect == EFFECT_MULTI || command->effect == EFFECT_EXEC || command->effect == EFFECT_DISCARD;
}

/* What one call of it costs Redis, in ns; as far as is known. Any thread. */
static inline uint32_t command_cost_ns(const struct command *command)
{
    return atomic_load_explicit(&command->cost.ns, memory_order_relaxed);
}

/* How many calls told that; 0: none did, it is a default by the command's flags. Any thread. */
static inline uint32_t command_cost_calls(const struct command *command)
{
    return atomic_load_explicit(&command->cost.calls, memory_order_relaxed);
}

#endif
