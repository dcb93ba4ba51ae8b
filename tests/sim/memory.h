/*
 * Memory that weir is refused: what its own code asks for while it serves clients, at places that the seed chooses.
 *
 * The linker gives weir's objects sim_malloc and its kin for the C library's (see the Makefile). Not refused are the
 * start, base/mem.h's (configuration, for which mem_would_give has asked before) and whatever libraries ask for
 * themselves: inih, hiredis' reader, OpenSSL and the C library, and Lua in the model of Redis; libuv is the simulator's.
 *
 * A place is the address that an allocation returns to. A run knows places by the order in which it has come to them, so
 * that it is the same at other addresses.
 */
#ifndef WEIR_SIM_MEMORY_H
#define WEIR_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum memory_mode {
    MEMORY_PLENTY,
    MEMORY_BY_CHANCE, /* each time */
    MEMORY_EACH_ONCE, /* each place once, by chance */
    MEMORY_ONE_PLACE, /* that one, the first time it is come to */
};

struct planned_memory {
    uint32_t mode;  /* enum memory_mode */
    uint32_t odds;  /* in millionths */
    uint32_t place; /* of MEMORY_ONE_PLACE */
};

void memory_start(void);
void memory_fini(void);

/* A client is closed that has done nothing wrong, and nothing but memory has been short: is that the price of a refusal? */
bool memory_explains_end(void);

/* What weir says tells what a refusal has cost it. */
void memory_read_log(struct slice line);

/* Has anything been refused so far? */
bool memory_was_short(void);

/* ---- of many runs, each in a process of its own ---- */

/* Before the first: what places they come to is written down. */
void memory_share(void);

/* Places that the last run has come to. */
uint32_t memory_places(void);

/* Say how many of all places have been refused memory, and which have not. */
void memory_tell(void);

#endif
