/*
 * Which lanes a command may use, and which nodes of a cluster get the command, as far as COMMAND
 * does not tell.
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
 * Which lanes a command may use: the rows of travel.def, and the rule for all other commands. For
 * command.c and its test only.
 */
struct travel {
    struct slice name; /* "client|id", or "client|*" for subcommands without their own row */
    enum flow flow;
    enum effect effect;
    bool is_shareable;
    bool is_data; /* shareable if the flags say only that the command reads or writes data */
    bool blocks;
    bool pins;
    bool may_forge;
    bool is_urgent;
    bool is_pausable; /* CLIENT PAUSE ... WRITE delays the command, which has no write flag */
    bool is_control;
    bool is_handshake;
};

/*
 * The row for the command or subcommand of this full name: its own, or the "|*" row of its
 * container. A command without either row, or with CMD_* flags that rule out sharing, gets a
 * private lane and may forge replies (command_row.h).
 */
struct travel travel_of(struct slice name, uint16_t flags);

/* The rows of travel.def. */
size_t travel_count(void);
const struct travel *travel_row(size_t i);

/*
 * ---- several nodes ----
 *
 * Which commands go to several nodes of a cluster, and how their replies become one: the rows of
 * fanout.def, and the tips of COMMAND. For command.c and control_reply.c, once for each row of a
 * command table. Any thread.
 */

enum fanout {
    FANOUT_KEYS,    /* to the slot of the keys; without keys to the default node */
    FANOUT_SLOTS,   /* one part for each slot of the keys */
    FANOUT_WRITTEN, /* FANOUT_SLOTS if cross-slot = split-all */
    FANOUT_MASTERS,
    FANOUT_NODES,
    FANOUT_SCAN,
    FANOUT_WAIT,
};

struct fanout_way {
    enum fanout to;
    enum join join;
};

/* The tips of COMMAND for one command; zeroed: none read. */
struct fanout_tips {
    bool has_request; /* a tip that weir follows: all_shards, all_nodes */
    bool has_response;
    struct fanout_way way;
};

/* Reads one tip of COMMAND. Tips that weir does not follow are skipped. */
void fanout_read_tip(struct fanout_tips *tips, struct slice tip);

/* The way of the command or subcommand of this full name. */
struct fanout_way fanout_of(struct slice name, const struct fanout_tips *tips);

#endif
