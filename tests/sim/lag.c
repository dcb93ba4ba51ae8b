#include "tests/sim/lag.h"

#include <string.h>

#include "tests/sim/deployment.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define TOLD 8192             /* moments for which the master's offset is kept, one each ms */
#define LAG_NS (4 * S)        /* longest lag of a replica: what TOLD moments cover */
#define BEHIND_NS (2500 * MS) /* replica-lag-max, and two probes of weir */

static struct lag_model {
    unsigned master;
    uint64_t offset, history;
    struct told {
        uint64_t ms, offset; /* offset at the end of the ms */
    } told[TOLD];            /* a ring */
    uint64_t n_told;
    unsigned lagging;
    uint64_t lag_ns;
    struct bell caught_up;
    uint64_t reached[SERVERS_MAX];
    uint64_t written[COUNTERS], read[COUNTERS];
} model;

static void tell(void)
{
    struct told *last = &model.told[(model.n_told + TOLD - 1) % TOLD];
    uint64_t ms = world.now_ns / MS;
    model.offset++;
    if (model.n_told == 0 || last->ms != ms)
        last = &model.told[model.n_told++ % TOLD];
    *last = (struct told){ms, model.offset};
}

static uint64_t offset_at(uint64_t ns)
{
    uint64_t first = model.n_told > TOLD ? model.n_told - TOLD : 0;
    for (uint64_t i = model.n_told; i > first; i--)
        if ((model.told[(i - 1) % TOLD].ms + 1) * MS <= ns)
            return model.told[(i - 1) % TOLD].offset;
    return 0;
}

/* Since when the master has had more than this offset. */
static uint64_t passed_ns(uint64_t offset)
{
    uint64_t first = model.n_told > TOLD ? model.n_told - TOLD : 0, ns = world.now_ns;
    for (uint64_t i = model.n_told; i > first && model.told[(i - 1) % TOLD].offset > offset; i--)
        ns = (model.told[(i - 1) % TOLD].ms + 1) * MS;
    return ns;
}

static uint64_t reached_by(unsigned which)
{
    bool lags = model.caught_up.due.place != 0 && which == model.lagging && which != model.master;
    uint64_t now = lags ? offset_at(world.now_ns - model.lag_ns) : model.offset;
    if (model.reached[which] < now)
        model.reached[which] = now;
    return model.reached[which];
}

/* COUNTERS: no counter's key. */
static unsigned counter_of(const struct slice *argv, size_t argc)
{
    bool is_counted = argc > 1 && argv[1].len > 7 && memcmp(argv[1].at, "count:", 6) == 0;
    unsigned i = is_counted ? (unsigned)(argv[1].at[6] - '0') : COUNTERS;
    return i < COUNTERS ? i : COUNTERS;
}

static void complain(unsigned counter, const char *why)
{
    run_blame("offsets", why);
    run_fail(server_answering().conn, "counter %u %s", counter, why);
}

static void judge_read(unsigned which, unsigned counter)
{
    uint64_t reached = reached_by(which), passed = passed_ns(reached);
    bool is_held = run.plan.is_pure && run.phase == RUN_ACTS && !deployment_is_upset(which);
    if (is_held && reached < model.written[counter])
        complain(counter, "reads from a replica that has not what it has written");
    if (is_held && reached < model.read[counter])
        complain(counter, "reads from a replica that is behind what it has read");
    if (is_held && world.now_ns > passed + BEHIND_NS)
        complain(counter, "reads from a replica that is too far behind");
    if (model.read[counter] < reached)
        model.read[counter] = reached;
}

void lag_hear(unsigned which, const struct slice *argv, size_t argc)
{
    if (run.plan.servers == 0)
        return;
    unsigned counter = counter_of(argv, argc);
    bool is_write = (argv[0].at[0] | 32) == 'i' && counter < COUNTERS;
    bool is_question = argv[0].len == 4 && counter == COUNTERS; /* INFO and similar */
    if (which == model.master && (is_write || (counter == COUNTERS && !is_question)))
        tell();
    if (is_write && which == model.master)
        model.written[counter] = model.offset;
    else if (counter < COUNTERS && !is_write)
        judge_read(which, counter);
    redis_set_offset(server_redis_of(which), reached_by(which), model.history, true);
}

void lag_promote(unsigned master)
{
    model.master = master;
    model.history++;
    model.reached[master] = model.offset;
}

void lag_forget(unsigned counter)
{
    model.written[counter] = model.read[counter] = 0;
}

void lag_begin(uint64_t ns, uint64_t pick)
{
    if (run.plan.servers == 0 || model.caught_up.due.place != 0)
        return;
    model.lagging = (unsigned)(pick % run.plan.servers);
    (void)reached_by(model.lagging);
    model.lag_ns = 1 + pick / 4 % LAG_NS;
    world_ring_at(&model.caught_up, world.now_ns + ns);
}

static void on_caught_up(struct bell *bell)
{
    (void)bell;
}

void lag_start(void)
{
    model = (struct lag_model){.caught_up.ring = on_caught_up, .history = 1};
}

void lag_end(void)
{
    world_silence(&model.caught_up);
}
