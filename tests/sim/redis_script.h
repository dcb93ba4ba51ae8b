/*
 * Scripts: stored by SHA-1, and run by Lua 5.1, possibly over some of the server's time.
 *
 * A script that takes time yields: 100,000 Lua steps take SCRIPT_SLICE_US, and redis.take_us(n)
 * takes n us. Nothing else is executed meanwhile, and from lua-time-limit on other requests get
 * BUSY.
 */
#ifndef WEIR_SIM_REDIS_SCRIPT_H
#define WEIR_SIM_REDIS_SCRIPT_H

#include "tests/sim/redis_state.h"

#define SCRIPT_SLICE_STEPS 100000
#define SCRIPT_SLICE_US 1000

void script_init(struct redis *redis);
void script_fini(struct redis *redis);
void script_abandon(struct redis *redis); /* ends the running script without a reply */

bool script_is_running(const struct redis *redis); /* a script has yielded */
/* a script has yielded, and lua-time-limit is over */
bool script_is_busy(const struct redis *redis);

/* The connection that has called the running script; NULL: none runs. */
struct redis_conn *script_caller(const struct redis *redis);

/* The script has read something: tracks its keys for the caller. */
void script_remember_keys(struct redis *redis);

/* due: when the script goes on. busy_from: when other requests begin to get BUSY. */
uint64_t script_due_us(const struct redis *redis);
uint64_t script_busy_from_us(const struct redis *redis);
void script_go_on(struct redis *redis);

#endif
