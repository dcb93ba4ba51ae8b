/* What the seed chooses before a run: sizes, speeds, odds, and weir's configuration. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/aborts.h"
#include "tests/sim/deployment.h"
#include "tests/sim/listen_address.h"
#include "tests/sim/exact_say.h"
#include "tests/sim/hangs.h"
#include "tests/sim/limits.h"
#include "tests/sim/moves.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"

enum {
    STREAM_PLAN = 4,
    STREAM_BESIDE = 8,
    STREAM_PLAN_ABORTS = 11,
    STREAM_NAME = 13,
    STREAM_SERVERS = 14
};

#define VALKEY 80001

static const uint32_t versions[] = {60216, 70015, 70206, 70401, VALKEY};

/* ---- weir's configuration ---- */

enum effects {
    MAY_CLOSE = 1,   /* may close a client, or answer that there is no connection for it */
    MAY_REFUSE = 2,  /* may refuse by limits that limits.h does not judge */
    MAY_MIX = 8,     /* there is no room for every subject */
    IDENTIFIES = 32, /* identifies clients by more than user and address */
    STAYS = 16,      /* needs a restart; a reload cannot change it */
};

static const struct setting {
    const char *line;
    uint32_t odds; /* in millionths */
    unsigned effects;
} settings[] = {
    {"lanes = private", 200000, STAYS},
    {"upstream-timeout = 200ms", 60000, MAY_CLOSE | STAYS},
    {"upstream-timeout = 5s", 60000, MAY_CLOSE | STAYS},
    {"connect-timeout = 100ms", 100000, MAY_CLOSE | STAYS},
    {"output-limit = 64kb", 80000, MAY_CLOSE},
    {"memory-limit = 4mb", 80000, MAY_CLOSE},
    {"max-clients = 5", 50000, MAY_CLOSE},
    {"max-lanes = 2", 50000, MAY_CLOSE},
    {"max-lanes = 12", 100000, MAY_CLOSE},
    {"max-subjects = 2", 60000, MAY_MIX | STAYS},
    {"max-subjects = 5", 100000, MAY_MIX | STAYS},
    {"idle-timeout = 1s", 50000, MAY_CLOSE},
    {"request-timeout = 1s", 50000, MAY_CLOSE},
    {"handshake-timeout = 300ms", 50000, MAY_CLOSE},
    {"drain-timeout = 2s", 200000, STAYS},
    {"drain-timeout = 0", 50000, STAYS},
    {"slowlog-log-slower-than = 0", 200000, 0},
    {"slowlog-max-len = 3", 100000, 0},
    {"limit-when-down = allow", 50000, 0},
    {"limit-when-down = deny", 50000, 0},
    {"log-format = json", 50000, 0},
    {"identity = key:1, user, ip", 50000, MAY_REFUSE | IDENTIFIES},
    {"identity = name, ip/24", 30000, MAY_REFUSE | IDENTIFIES},
    {"when-upstream-down = error", 200000, 0},
    {"failover-wait = 0", 80000, 0},
    {"failover-wait = 200ms", 100000, 0},
    {0},
};

#define INFLIGHT_MOST 3
#define INFLIGHT "inflight = 3"

static const struct setting policy_lines[] = {
    {INFLIGHT " per connection", 150000, MAY_REFUSE},
    {"inflight = 40", 80000, MAY_REFUSE},
    {"inflight = 2", 80000, MAY_REFUSE},
    /* requests that would wait longer are refused, such as large words */
    {"bytes-in = 200kb/s burst 300kb over delay 10s", 60000, MAY_REFUSE},
    {"bytes-out = 400kb/s burst 500kb", 60000, MAY_REFUSE},
    {"connections = 5", 40000, MAY_CLOSE},
    {"connects = 20/s burst 5 over close", 40000, MAY_CLOSE},
    {"cost = 1000/s burst 100 over delay 200ms", 80000, MAY_REFUSE},
    {"@list = 2000/s burst 50 over delay 1s", 80000, MAY_REFUSE},
    {"cmd.mget = 10/s over shadow", 100000, 0},
    {"@string = 5000/s burst 10 over delay 20ms, 100000/h", 60000, MAY_REFUSE},
    {0},
};

__attribute__((format(printf, 2, 3))) static void add(char *config, const char *format, ...)
{
    size_t n = strlen(config);
    va_list args;
    va_start(args, format);
    vsnprintf(config + n, PLAN_CONFIG - n, format, args);
    va_end(args);
}

/*
 * Adds random lines, at most one of each name. Lines that need a restart are added only to the
 * configuration of the start.
 */
static void add_some(struct plan *plan, struct random *chance, char *config,
                     const struct setting *table)
{
    const char *last = "";
    for (const struct setting *row = table; row->line != NULL; row++) {
        size_t name = strcspn(row->line, " ");
        bool stays = (row->effects & STAYS) != 0 && config != plan->config;
        bool is_other = plan->has_aborts &&
                        ((row->effects & IDENTIFIES) != 0 || strstr(row->line, "upstream-timeout"));
        is_other |= plan->is_pure && !deployment_bears(row->line, (row->effects & MAY_CLOSE) != 0);
        if (strncmp(row->line, last, name) == 0 || !random_hits(chance, row->odds) || stays ||
            is_other)
            continue;
        last = row->line;
        add(config, "%s\n", row->line);
        plan->may_close |= (row->effects & MAY_CLOSE) != 0;
        plan->may_mix |= (row->effects & MAY_MIX) != 0;
        plan->may_refuse |= (row->effects & MAY_REFUSE) != 0;
        plan->identifies |= (row->effects & IDENTIFIES) != 0;
    }
}

/*
 * Adds the limits in which operators set rates of single keys, and one limit that they change
 * freely.
 */
static void add_named(struct plan *plan, char *config)
{
    add(config,
        "[limit gate0]\nsliding = 50/1d\n[limit gate1]\nfunnel = 50/1d\n[limit spare]\nsliding = 5/1d\n");
    plan->may_mix = plan->may_refuse = true; /* operators use FORGIVE and shadow mode */
}

/* Adds lines that only a restart changes. All configurations of a run have the same such lines. */
static void add_fixed(const struct plan *plan, char *config)
{
    static const char *const cells[] = {"", "", "cl-throttle = raw\n", "", "cl-throttle = off\n"};
    char listen[256];
    listen_address_config(plan->entrances, listen, sizeof listen);
    add(config, "[weir]\n%supstream = ", listen);
    if (plan->servers > 0)
        deployment_config(plan, config + strlen(config), PLAN_CONFIG - strlen(config));
    else
        add(config, "%s:6379\n", plan->has_name ? MOVES_NAME : "127.0.0.1");
    add(config, "fair-share = on\nworkers = %u\n", plan->workers);
    if (plan->has_name)
        add(config, "upstream-resolve = 1s\n");
    if (plan->knows_password)
        add(config, "upstream-password-file = " PASSWORD_PATH "\n");
    add(config, "%s", cells[plan->seed % (sizeof cells / sizeof cells[0])]);
    if (plan->has_user_keys)
        add(config, "limit-prefix = 100%%%%:%%u:\n");
}

static void configure(struct plan *plan, struct random *chance, char *config,
                      struct planned_limits *limits)
{
    add_fixed(plan, config);
    add_some(plan, chance, config, settings);
    limits->is_shadow =
        random_hits(chance, config == plan->config ? 50000 : 200000) && !plan->has_aborts;
    if (limits->is_shadow)
        add(config, "mode = shadow\n");
    if (plan->has_hangs)
        add(config, "upstream-timeout = %ums\n", HANGS_TIMEOUT_MS);
    if (plan->has_operator)
        add(config, "[admin]\nsocket = " ADMIN_PATH "\n");
    for (unsigned i = 0; named_limit_lines(i) != NULL; i++)
        if ((plan->named >> i & 1) != 0)
            add(config, "%s", named_limit_lines(i));
    const char *is_admin = plan->operators == OPERATORS_ALL ? "yes" : "no";
    if (plan->operators == OPERATORS_USER)
        add(config, "[policy operators]\nmatch = user:u%u\nadmin = yes\ncost = 1m/s\n", OPERATOR);
    if (plan->has_free)
        add(config, "[policy free]\nmatch = ip:" FREE_ADDRESS_TEXT "\nadmin = %s\n", is_admin);
    if (plan->operators != OPERATORS_NONE)
        add_named(plan, config);
    if (plan->has_aborts)
        add(config, "%s", ABORTS_POLICY);
    if (plan->has_hangs)
        add(config, "%s", HANGS_SECTIONS);
    add(config, "[policy default]\nadmin = %s\n", is_admin);
    if (!plan->has_limits)
        return;
    size_t n = strlen(config);
    if (limits != &plan->limits && random_hits(chance, 400000)) {
        limits_write(&plan->limits, config + n, PLAN_CONFIG - n);
        memcpy(limits->all, plan->limits.all, sizeof limits->all);
        limits->n = plan->limits.n;
    } else {
        limits_plan(limits, chance, config + n, PLAN_CONFIG - n);
    }
    add_some(plan, chance, config, policy_lines);
}

/* ---- the rest of the plan ---- */

/* A subject without funnels of its own uses those of other subjects. */
void plan_refuse(struct plan *plan, const struct planned_memory *memory)
{
    plan->memory = *memory;
    plan->may_mix = plan->may_refuse = true;
    plan->is_pure = false; /* a client without memory is closed */
}

static void plan_memory(struct plan *plan, struct random *chance)
{
    struct planned_memory memory = {.mode = MEMORY_BY_CHANCE};
    if (!random_hits(chance, 250000) || plan->has_aborts || plan->is_pure)
        return;
    memory.odds = (uint32_t)random_scale(chance, 30000);
    if (random_hits(chance, 500000))
        memory = (struct planned_memory){MEMORY_EACH_ONCE,
                                         .odds = (uint32_t)random_scale(chance, 500000)};
    plan_refuse(plan, &memory);
}

/*
 * Runs with aborts (aborts.h) have exact laws: limits refuse, addresses are subjects, and no
 * operator, password or lack of memory interferes.
 */
static void plan_aborts(struct plan *plan)
{
    struct random chance;
    random_init(&chance, plan->seed, STREAM_PLAN_ABORTS);
    plan->has_aborts = random_hits(&chance, 120000);
    if (!plan->has_aborts)
        return;
    plan->has_hangs = random_hits(&chance, 500000);
    plan->may_close |= plan->has_hangs;
    plan->has_operator = plan->has_password = plan->knows_password = plan->may_change_password =
        false;
    plan->operators = OPERATORS_NONE;
}

/*
 * Runs with several servers have no operator, password or administrator. Half of these runs have no
 * other faults, so the laws of counters.h are exact.
 */
static void plan_servers(struct plan *plan)
{
    struct random chance;
    random_init(&chance, plan->seed, STREAM_SERVERS);
    if (plan->has_aborts || plan->has_name || !random_hits(&chance, 150000))
        return;
    plan->servers = 2 + (unsigned)random_below(&chance, SERVERS_MAX - 1);
    plan->is_pure = random_hits(&chance, 500000);
    plan->has_sentinels = random_hits(&chance, 500000);
    plan->has_reads = random_hits(&chance, 400000);
    plan->has_operator = plan->has_password = plan->knows_password = plan->may_change_password =
        false;
    plan->operators = OPERATORS_NONE;
    plan->may_close = true;
    if (!plan->is_pure)
        return;
    plan->has_limits = plan->has_slow = plan->has_huge = plan->has_free = false;
    plan->odds.fds = KERNEL_FDS_ENOUGH;
    plan->redis.maxclients = 0;
}

/* Draws what is done beside weir, and how long scripts take. */
static void plan_beside(struct plan *plan)
{
    struct random chance;
    random_init(&chance, plan->seed, STREAM_BESIDE);
    plan->may_change_password = random_hits(&chance, 200000);
    plan->knows_password =
        plan->has_password || (plan->may_change_password && random_hits(&chance, 700000));
    plan->has_slow = random_hits(&chance, 500000);
    plan->gives_back = random_hits(&chance, 600000);
    plan->redis.busy_us = random_hits(&chance, 500000) ? 0 : 1000 + random_scale(&chance, 3000000);
    plan->has_user_keys = random_hits(&chance, 300000);
    plan_aborts(plan);
    plan->has_huge = random_hits(&chance, 200000);
    random_init(&chance, plan->seed, STREAM_NAME);
    plan->has_name = !plan->has_aborts && random_hits(&chance, 300000);
    plan_servers(plan);
}

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
    plan->odds =
        (struct odds){.window = 1024 + random_scale(&chance, 1 << 18), .fds = KERNEL_FDS_ENOUGH};
    plan->odds.delay_ns = random_hits(&chance, 500000) ? 0 : random_scale(&chance, 5000000);
    plan->odds.cut_read =
        random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 500000);
    plan->odds.cut_write =
        random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 500000);
    plan->odds.again = random_hits(&chance, 500000) ? 0 : (uint32_t)random_scale(&chance, 200000);
    plan->fault_ns =
        random_hits(&chance, 300000) ? 0 : 10000000 + 1000 * random_scale(&chance, 30000000);
    plan->fault_steps = 100 + random_scale(&chance, 50000);
    plan->stops_amid = random_hits(&chance, 300000);
    plan->stops_at_once = random_hits(&chance, 300000);
    plan->redis.seed = seed;
    plan->redis.version = versions[random_below(&chance, sizeof versions / sizeof versions[0])];
    plan->redis.is_valkey = plan->redis.version == VALKEY;
    plan->redis.has_replica = seed % 2 == 0;
    plan->redis.forges = random_hits(&chance, 300000);
    plan->has_limits = random_hits(&chance, 500000);
    plan->has_password = random_hits(&chance, 200000);
    if (random_hits(&chance, 250000))
        plan->operators = random_hits(&chance, 500000) ? OPERATORS_ALL : OPERATORS_USER;
    plan->n_regimes = 1 + (unsigned)random_below(&chance, REGIMES_MAX);
    plan->has_operator = random_hits(&chance, 500000);
    plan->has_free = plan->has_limits && random_hits(&chance, 300000);
    plan->entrances =
        random_hits(&chance, 500000) ? 0 : (unsigned)random_below(&chance, LISTEN_ADDRESS_ALL + 1);
    plan->odds.interrupted =
        random_hits(&chance, 700000) ? 0 : (uint32_t)random_scale(&chance, 100000);
    if (random_hits(&chance, 50000)) {
        plan->odds.fds = 30 + (uint32_t)random_below(&chance, 60);
        plan->may_close = true;
    }
    if (random_hits(&chance, 50000)) {
        plan->redis.maxclients = 5 + (uint32_t)random_below(&chance, 30);
        plan->may_close = true;
    }
    for (unsigned i = 0; named_limit_lines(i) != NULL; i++)
        plan->named |= (uint32_t)random_hits(&chance, 400000) << i;
    plan_beside(plan);
    configure(plan, &chance, plan->config, &plan->limits);
    bool is_constant = plan->n_regimes == 1 && !plan->has_operator && !plan->has_free &&
                       !plan->limits.is_shadow && plan->operators == OPERATORS_NONE;
    plan->inflight = is_constant && strstr(plan->config, INFLIGHT) != NULL ? INFLIGHT_MOST : 0;
    for (unsigned i = 0; i + 1 < plan->n_regimes; i++)
        configure(plan, &chance, plan->others[i].config, &plan->others[i].limits);
    plan_memory(plan, &chance);
}
