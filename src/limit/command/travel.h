/*
 * How a command travels, as far as COMMAND cannot tell: which lanes it may use, and to which nodes
 * of a cluster it goes.
 */
#ifndef WEIR_LIMIT_TRAVEL_H
#define WEIR_LIMIT_TRAVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command_row.h"
#include "resp/join.h"

/*
 * Which lanes a command may use: the rows of travel.def, and the rule for everything else. For command.c and its test
 * only.
 */
struct travel {
    struct slice name; /* "client|id", or "client|*" for subcommands without a row of their own */
    enum flow flow;
    enum effect effect;
    bool is_shareable;
    bool is_data; /* shareable if its flags say only that it reads or writes data */
    bool blocks;
    bool pins;
    bool may_forge;
    bool is_urgent;
    bool is_pausable; /* CLIENT PAUSE ... WRITE delays it, though it is not flagged as writing */
    bool is_control;
    bool is_handshake;
};

/*
 * For the command or subcommand of this full name: its own row, or its container's "|*". Without either, or with CMD_*
 * flags that speak against sharing, it gets a private lane and may forge.
 */
struct travel travel_of(struct slice name, uint16_t flags);

/* The rows of travel.def. */
size_t travel_count(void);
const struct travel *travel_row(size_t i);

/*
 * ---- more than one node ----
 *
 * Which commands go to more than one node of a cluster, and how their replies become one: the rows of fanout.def, and
 * the tips of COMMAND. For command.c and control_reply.c, once for each row of a command table. Any thread.
 */

enum fanout {
    FANOUT_KEYS,    /* to the slot of its keys; without keys to the home node */
    FANOUT_SLOTS,   /* one part for each slot of its keys */
    FANOUT_WRITTEN, /* the same, where cross-slot = split-all */
    FANOUT_MASTERS,
    FANOUT_NODES,
    FANOUT_SCAN,
    FANOUT_WAIT,
};

struct fanout_way {
    enum fanout to;
    enum join join;
};

/* What tips say of a command: zeroed, none has been read. */
struct fanout_tips {
    bool has_request; /* one that weir follows: all_shards, all_nodes */
    bool has_response;
    struct fanout_way way;
};

/* Read one of COMMAND's tips; what weir does not follow is left out. */
void fanout_read_tip(struct fanout_tips *tips, struct slice tip);

/* For the command or subcommand of this full name. */
struct fanout_way fanout_of(struct slice name, const struct fanout_tips *tips);

#endif
