/*
 * Which lanes a command may use, as far as COMMAND cannot tell: the rows of travel.def, and the rule for everything
 * else. For command.c and its test only.
 */
#ifndef WEIR_LIMIT_TRAVEL_H
#define WEIR_LIMIT_TRAVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command_row.h"

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

#endif
