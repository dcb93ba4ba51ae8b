/*
 * Scripts: kept by their SHA-1, run by Lua 5.1, perhaps for a while of the server's time.
 *
 * A script that takes time (100,000 steps take SCRIPT_SLICE_US, redis.take_us(n) takes what it says) gives way: nothing
 * else is carried out meanwhile, and from lua-time-limit on others are told BUSY.
 */
#ifndef WEIR_SIM_REDIS_SCRIPT_H
#define WEIR_SIM_REDIS_SCRIPT_H

#include "tests/sim/redis_state.h"

#define SCRIPT_SLICE_STEPS 100000
#define SCRIPT_SLICE_US 1000

void script_init(struct redis *redis);
void script_fini(struct redis *redis);
void script_abandon(struct redis *redis); /* what runs ends without an answer */

bool script_is_running(const struct redis *redis); /* it has given way */
bool script_is_busy(const struct redis *redis);    /* and others are told so */

/* Who has asked for the script that runs; NULL: none does. */
struct redis_conn *script_caller(const struct redis *redis);

/* It has read something: its caller is told when one of the keys changes that it was given. */
void script_remember_keys(struct redis *redis);

/* When it goes on; when others are to be told BUSY. */
uint64_t script_due_us(const struct redis *redis);
uint64_t script_busy_from_us(const struct redis *redis);
void script_go_on(struct redis *redis);

#endif
