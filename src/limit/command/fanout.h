/*
 * Which commands go to more than one node of a cluster, and how their replies become one: the rows of fanout.def, and
 * the tips of COMMAND. For command.c and control_reply.c, once for each row of a command table. Any thread.
 */
#ifndef WEIR_LIMIT_FANOUT_H
#define WEIR_LIMIT_FANOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/join.h"

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
