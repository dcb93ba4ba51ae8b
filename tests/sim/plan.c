/*
 * What the seed chooses before a run: sizes, speeds, odds, and weir's configuration.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/limits.h"
#include "tests/sim/run.h"

enum { STREAM_PLAN = 4 };

#define VALKEY 80001

static const uint32_t versions[] = {60216, 70015, 70206, 70401, VALKEY};

/* ---- weir's configuration ---- */

enum effects {
    MAY_CLOSE = 1,  /* a client, or answer that there is no connection for it */
    MAY_REFUSE = 2, /* what no law of limits.h is about */
    MAY_WAIT = 4,
    MAY_MIX = 8, /* subjects share funnels, and come out of them again */
};

static const struct setting {
    const char *line;
    uint32_t odds; /* in millionths */
    unsigned effects;
} settings[] = {
    {"lanes = private", 200000, 0},
    {"upstream-timeout = 200ms", 60000, MAY_CLOSE},
    {"upstream-timeout = 5s", 60000, MAY_CLOSE},
    {"connect-timeout = 100ms", 100000, MAY_CLOSE},
    {"output-limit = 64kb", 80000, MAY_CLOSE},
    {"memory-limit = 4mb", 80000, MAY_CLOSE},
    {"max-clients = 5", 50000, MAY_CLOSE},
    {"max-lanes = 2", 50000, MAY_CLOSE},
    {"max-lanes = 12", 100000, MAY_CLOSE},
    {"max-subjects = 2", 50000, MAY_REFUSE | MAY_MIX},
    {"idle-timeout = 1s", 50000, MAY_CLOSE},
    {"request-timeout = 1s", 50000, MAY_CLOSE},
    {"handshake-timeout = 300ms", 50000, MAY_CLOSE},
    {"drain-timeout = 2s", 200000, 0},
    {"drain-timeout = 0", 50000, 0},
    {"slowlog-log-slower-than = 0", 200000, 0},
};

static const struct setting policy_lines[] = {
    {"inflight = 3 per connection", 80000, MAY_REFUSE},
    {"inflight = 40", 80000, MAY_REFUSE},
    {"bytes-in = 200kb/s burst 300kb over delay 10s", 60000, MAY_WAIT},
    {"bytes-out = 400kb/s burst 500kb", 60000, MAY_REFUSE},
    {"connections = 5", 40000, MAY_CLOSE},
    {"connects = 20/s burst 5 over close", 40000, MAY_CLOSE},
    {"cost = 1000/s burst 100 over delay 200ms", 80000, MAY_REFUSE},
    {"all = 2000/s burst 50 over delay 1s", 80000, MAY_REFUSE},
    {"cmd.mget = 10/s over shadow", 100000, 0},
    {"write = 5000/s burst 10 over delay 20ms, 100000/h", 60000, MAY_REFUSE},
};

__attribute__((format(printf, 2, 3))) static void add(struct plan *plan, const char *format, ...)
{
    size_t n = strlen(plan->config);
    va_list args;
    va_start(args, format);
    vsnprintf(plan->config + n, sizeof plan->config - n, format, args);
    va_end(args);
}

static void add_some(struct plan *plan, struct random *chance, const struct setting *table, size_t n)
{
    unsigned last = 0;
    for (size_t i = 0; i < n; i++) {
        size_t name = strcspn(table[i].line, " ");
        bool is_again = i > 0 && last > 0 && strncmp(table[i].line, table[last - 1].line, name) == 0;
        if (is_again || !random_hits(chance, table[i].odds))
            continue;
        last = (unsigned)i + 1;
        add(plan, "%s\n", table[i].line);
        plan->may_close |= (table[i].effects & MAY_CLOSE) != 0;
        plan->may_mix |= (table[i].effects & MAY_MIX) != 0;
        plan->may_refuse |= (table[i].effects & MAY_REFUSE) != 0;
    }
}

static void configure(struct plan *plan, struct random *chance)
{
    add(plan, "[weir]\nlisten = 127.0.0.1:6380\nupstream = 127.0.0.1:6379\nworkers = %u\n", plan->workers);
    if (plan->has_password)
        add(plan, "upstream-password-file = " PASSWORD_PATH "\n");
    add_some(plan, chance, settings, sizeof settings / sizeof settings[0]);
    add(plan, "[policy default]\nadmin = no\n");
    if (plan->has_limits) {
        size_t n = strlen(plan->config);
        limits_plan(&plan->limits, chance, plan->config + n, sizeof plan->config - n);
        add_some(plan, chance, policy_lines, sizeof policy_lines / sizeof policy_lines[0]);
    }
}

/* ---- everything else ---- */

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
    plan->redis.version = versions[random_below(&chance, sizeof versions / sizeof versions[0])];
    plan->redis.is_valkey = plan->redis.version == VALKEY;
    plan->redis.forges = random_hits(&chance, 300000);
    plan->has_limits = random_hits(&chance, 500000);
    plan->has_password = random_hits(&chance, 200000);
    configure(plan, &chance);
}
