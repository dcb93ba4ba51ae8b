/*
 * A row of the command table: what one command or subcommand is, and how it travels. Never changes once in a table.
 */
#ifndef WEIR_LIMIT_COMMAND_ROW_H
#define WEIR_LIMIT_COMMAND_ROW_H

#include <stdbool.h>
#include <stdint.h>

#define COMMAND_NAME_MAX 64

/* What comes back for a command outside MULTI (inside, everything is one +QUEUED or one error). */
enum flow {
    FLOW_ONE,         /* exactly one reply */
    FLOW_SUBSCRIBE,   /* a frame for each argument, or one error */
    FLOW_UNSUBSCRIBE, /* a frame for each argument; without arguments one for each subscription, at least one */
    FLOW_MONITOR,     /* one reply, then lines without end */
    FLOW_REPLY,       /* CLIENT REPLY: on one, off and skip none */
    FLOW_RAW,         /* from here on bytes without frames (SYNC, PSYNC, REPLCONF) */
    FLOW_QUIT,        /* one reply, then closed */
    FLOW_DROP,        /* closed without a word (POST, Host:) */
    FLOW_OWN,         /* weir's own command, answered here: own.def */
};

/* What a command does to the state of its connection, as far as weir must follow it. */
enum effect {
    EFFECT_NONE,
    EFFECT_AUTH,
    EFFECT_HELLO,
    EFFECT_SELECT,
    EFFECT_NAME,    /* CLIENT SETNAME */
    EFFECT_GETNAME, /* CLIENT GETNAME: tells what CLIENT SETNAME has set */
    EFFECT_RESET,
    EFFECT_MULTI,
    EFFECT_EXEC,
    EFFECT_DISCARD,
    EFFECT_WATCH,
    EFFECT_UNWATCH,
    EFFECT_TRACKING, /* CLIENT TRACKING */
    EFFECT_NO_EVICT, /* CLIENT NO-EVICT */
    EFFECT_NO_TOUCH, /* CLIENT NO-TOUCH */
    EFFECT_LIBRARY,  /* CLIENT SETINFO: names the client's library, which RESET does not take away */
    EFFECT_WAIT,     /* WAIT, WAITAOF: asks about its connection's last command */
    EFFECT_WRITE,    /* no row's: a write that replicas are surely sent, see front/proof.h */
    EFFECT_ADMIT,    /* on others: may change which user Redis gives to connections that do not log in */
    EFFECT_PAUSE,    /* on others: CLIENT PAUSE */
    EFFECT_UNPAUSE,  /* CLIENT UNPAUSE */
    EFFECT_COMMAND,  /* on none: weir's own commands are added to the answer */
};

/* What a command is in metrics: the first of these that holds, from the end. */
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

/* Flags as `COMMAND` names them; the rest is not needed. */
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
    CMD_CONTROL = 1 << 10, /* weir's own class `control`: never refused */
};

struct command {
    char name[COMMAND_NAME_MAX + 1]; /* lower case; a subcommand is "config|get" */
    uint8_t name_len;
    uint8_t flow;      /* enum flow */
    uint8_t effect;    /* enum effect */
    uint8_t keys;      /* enum keys_rule: how its keys are found */
    uint8_t keys_arg;  /* the rule's argument */
    uint8_t kind;      /* enum command_kind */
    uint8_t own;       /* 1 + its row in own.def; 0: it is Redis' */
    bool is_shareable; /* may travel on a lane that other clients use too */
    bool blocks;       /* may wait in Redis; the client's going away must end it at once */
    bool is_urgent;    /* must reach a Redis that is busy or paused: its lane is made with as little as possible */
    bool pins;         /* its client keeps the private lane until it closes */
    bool may_forge;    /* its reply may be shaped into several frames, or what it does to the lane is not known */
    bool is_pausable;  /* CLIENT PAUSE ... WRITE holds it back */
    bool in_container; /* name has a '|' */
    bool has_subcommands;
    uint16_t id;   /* dense, 0 is the row of every unknown command */
    int16_t arity; /* as COMMAND gives it: negative is "at least" */
    uint16_t flags;
    int16_t first_key, last_key, key_step;
    uint64_t categories; /* bit i: command_table_category(table, i) */
};

#endif
