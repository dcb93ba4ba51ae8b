/*
 * Refusals of memory: allocations of weir's own code fail while it serves clients, at sites that
 * the seed chooses.
 *
 * The linker replaces malloc and similar functions in weir's objects by sim_malloc and similar
 * functions (see the Makefile). Not refused: the start, base/mem.h (configuration, checked by
 * mem_would_give), and what libraries allocate themselves. Those libraries are inih, hiredis'
 * reader, OpenSSL, the C library, and Lua in the model of Redis. libuv is the simulator's.
 *
 * A site is the address that an allocation returns to. A run numbers sites in the order of first
 * use. So the numbers do not depend on the addresses of a build.
 */
#ifndef WEIR_SIM_MEMORY_H
#define WEIR_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum memory_mode {
    MEMORY_PLENTY,
    MEMORY_BY_CHANCE, /* each allocation */
    MEMORY_EACH_ONCE, /* each site once, by chance */
    MEMORY_ONE_SITE,  /* one site, at its first use */
};

struct planned_memory {
    uint32_t mode;  /* enum memory_mode */
    uint32_t odds;  /* in millionths */
    uint32_t place; /* number of the site, for MEMORY_ONE_SITE */
};

void memory_start(void);
void memory_fini(void);

/*
 * A client without a fault was closed, and only memory was short. True if a refusal explains that.
 * Each refusal explains one close.
 */
bool memory_explains_end(void);

/* Reads a line of weir's log for what a refusal has closed. */
void memory_read_log(struct slice line);

/* True if an allocation has been refused so far. */
bool memory_was_short(void);

/* ---- for many runs, each in a process of its own ---- */

/* Shares the sites of all runs. To be called before the first run. */
void memory_share(void);

/* Number of sites in the last run. */
uint32_t memory_sites(void);

/* Prints how many of all sites were refused memory, and which sites were not. */
void memory_tell(void);

#endif
