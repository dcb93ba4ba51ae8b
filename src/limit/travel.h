/*
 * How commands travel, as far as COMMAND cannot tell: the rows of travel.def and the rule for everything else.
 * Only command.c and its test need this.
 */
#ifndef WEIR_LIMIT_TRAVEL_H
#define WEIR_LIMIT_TRAVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command_row.h"

struct travel {
    struct slice name; /* "client|id", or "client|*" for subcommands without a row of their own */
    enum flow flow;
    enum effect effect;
    bool is_shareable;
    bool is_data; /* shareable if its flags say no more than that it reads or writes */
    bool blocks;
    bool pins;
    bool may_forge;
    bool is_urgent;
    bool is_pausable; /* though its flags do not say that it writes */
    bool is_control;
};

/*
 * How the command or subcommand of this full name travels: its own row, or its container's "|*". Without either, or
 * with CMD_* flags that speak against it, on a lane of its own, and it may forge.
 */
struct travel travel_of(struct slice name, uint16_t flags);

/* The rows kept by hand. */
size_t travel_count(void);
const struct travel *travel_row(size_t i);

#endif
