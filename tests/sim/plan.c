/*
 * What the seed chooses before a run: sizes, speeds, odds, and weir's configuration.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/limits.h"
#include "tests/sim/run.h"

enum { STREAM_PLAN = 4 };

void plan_make(struct plan *plan, uint64_t seed, uint64_t steps)
{
    struct random chance;
    random_init(&chance, seed, STREAM_PLAN);
    *plan = (struct plan){.seed = seed, .steps = steps};
    plan->clients = 1 + (unsigned)random_below(&chance, 24);
    plan->workers = 1 + (unsigned)random_below(&chance, 3);
    plan->pipeline = (unsigned)random_scale(&chance, 64);
    plan->think_ns = random_hits(&chance, 500000) ? 0 : random_scale(&chance, 100000000);
    plan->tick_ns = random_hits(&chance, 500000) ? 0 : random_scale(&chance, 1000);
    plan->turn_ns = random_hits(&chance, 300000) ? 0 : random_scale(&chance, 100000);
    plan->command_ns = random_hits(&chance, 500000) ? 0 : random_scale(&chance, 10000);
    plan->redis_turn = (unsigned)random_scale(&chance, 256);
    plan->value_max = (uint32_t)random_scale(&chance, 100000);
    plan->odds = (struct odds){.window = 1024 + random_scale(&chance, 1 << 18), .fds = 1024};
    plan->odds.delay_ns = random_hits(&chance, 500000) ? 0 : random_scale(&chance, 5000000);
    plan->odds.cut_read = random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 500000);
    plan->odds.cut_write = random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 500000);
    plan->odds.again = random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 200000);
    plan->fault_ns = random_hits(&chance, 300000) ? 0 : 10000000 + 1000 * random_scale(&chance, 30000000);
    plan->fault_steps = 100 + random_scale(&chance, 50000);
    plan->stops_amid = random_hits(&chance, 300000);
    plan->stops_at_once = random_hits(&chance, 300000);
    plan->redis.seed = seed;
    size_t n = (size_t)snprintf(plan->config, sizeof plan->config,
                                "[weir]\nlisten = 127.0.0.1:6380\nupstream = 127.0.0.1:6379\nworkers = %u\nlanes = %s\n"
                                "log-level = debug\n",
                                plan->workers, random_hits(&chance, 200000) ? "private" : "shared");
    plan->has_limits = random_hits(&chance, 500000);
    if (plan->has_limits) {
        n += (size_t)snprintf(plan->config + n, sizeof plan->config - n, "[policy default]\n");
        limits_plan(&plan->limits, &chance, plan->config + n, sizeof plan->config - n);
    }
}
