#include "tests/sim/faults.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/client.h"
#include "tests/sim/loops.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define STEP_PATIENCE_NS (10 * MS)
#define SPELL_MAX_US 20000000 /* how long it lasts, at most */
#define REST_NS (61000 * MS)  /* what weir gives up unused it gives up after a minute */

enum { STREAM_FAULTS = 5 };

static struct faults {
    struct bell next; /* fault */
    uint64_t next_step;
    uint64_t rest_ns; /* nobody does anything before */
    struct bell over; /* the spell that is on */
    struct random chance;
    struct conn *held; /* a client's connection on which nothing arrives; NULL: none */
} faults;

struct fault {
    const char *name;
    unsigned weight;
    bool is_harmless; /* no connection is closed for it */
    /* Both drawn anew for each: how long it lasts, and which of several. */
    void (*strike)(uint64_t ns, uint64_t pick);
};

/* ---- Redis ---- */

static void cut_lane(uint64_t ns, uint64_t pick)
{
    (void)ns;
    server_cut(pick);
}

static void fall(uint64_t ns, uint64_t pick)
{
    if (!server_is_up())
        return;
    server_fall(pick % 2 == 0);
    world_ring_at(&faults.over, world.now_ns + ns);
}

static void rise(bool keeps_data)
{
    run.losses += !keeps_data;
    if (!keeps_data)
        run.changed_ns = world.now_ns;
    server_rise(keeps_data, run.plan.redis.requirepass);
}

static void restart(uint64_t ns, uint64_t pick)
{
    (void)ns;
    if (!server_is_up())
        return;
    server_fall(pick % 2 == 0);
    rise(pick % 8 < 4);
}

static void hush(uint64_t ns, uint64_t pick)
{
    (void)pick;
    server_sleep(ns);
}

static void step_clock(uint64_t ns, uint64_t pick)
{
    int64_t us = (int64_t)(ns / US);
    run.clock_steps++;
    run.changed_ns = world.now_ns;
    server_step_clock(pick % 2 == 0 ? us : -us);
}

/* ---- the system ---- */

static void starve(uint64_t ns, uint64_t pick)
{
    struct sim_loop *loop = loop_number((unsigned)(pick % (run.plan.workers + 1)));
    if (loop != NULL)
        world_sleep(&loop->party, ns);
}

static void run_short(uint64_t ns, uint64_t pick)
{
    uint32_t often = (uint32_t)(pick % 500000);
    struct odds *odds = &kernel.odds;
    switch (pick % 6) {
    case 0:
        odds->accept_emfile = often;
        break;
    case 1:
        odds->accept_aborted = often;
        break;
    case 2:
        odds->socket_emfile = often;
        break;
    case 3:
        odds->refuse = often;
        break;
    case 4:
        odds->drop = often;
        break;
    default:
        odds->nobufs = often / 100;
    }
    world_ring_at(&faults.over, world.now_ns + ns);
}

/* ---- clients ---- */

static void reset_client(uint64_t ns, uint64_t pick)
{
    (void)ns;
    struct client *client = client_picked(pick);
    if (client != NULL)
        client_hang_up(client, pick % 2 == 0);
}

static void blind_client(uint64_t ns, uint64_t pick)
{
    struct client *client = client_picked(pick);
    if (client != NULL)
        client->reads_ns = world.now_ns + ns;
}

/* For so long that what has not been used for a minute is given up, and then all at once. Nothing else happens. */
static void rest_all(uint64_t ns, uint64_t pick)
{
    (void)pick;
    faults.rest_ns = world.now_ns + REST_NS + ns;
    clients_rest(faults.rest_ns);
}

/* ---- weir itself ---- */

static void reload(uint64_t ns, uint64_t pick)
{
    (void)ns;
    (void)pick;
    loop_signal(SIGHUP);
}

static const struct fault table[] = {
    {"lane_reset", 10, false, cut_lane},
    {"redis_down", 3, false, fall},
    {"redis_restart", 3, false, restart},
    {"redis_silent", 5, false, hush},
    {"redis_clock", 3, true, step_clock},
    {"starved", 5, false, starve},
    {"system_short", 5, false, run_short},
    {"client_gone", 10, true, reset_client},
    {"client_blind", 10, false, blind_client},
    {"reload", 6, true, reload},
    {"rest", 2, true, rest_all},
};
#define N_FAULTS (sizeof table / sizeof table[0])

static const struct fault *draw(void)
{
    uint64_t whole = 0, drawn;
    for (size_t i = 0; i < N_FAULTS; i++)
        whole += table[i].weight;
    drawn = random_below(&faults.chance, whole);
    for (size_t i = 0; i < N_FAULTS; i++) {
        if (drawn < table[i].weight)
            return &table[i];
        drawn -= table[i].weight;
    }
    return &table[0];
}

static void get_well(void)
{
    struct odds now = run.plan.odds;
    kernel.odds = now;
    if (!server_is_up())
        rise(random_hits(&faults.chance, 700000));
}

static void on_over(struct bell *bell)
{
    (void)bell;
    trace_note(TRACE_FAULT, 0, "over", 4);
    get_well();
}

/* After a while or after some turns, whichever comes first: a run may be a second of many turns, or an hour of few. */
static void plan_next(void)
{
    faults.next_step = world.steps + 1 + random_below(&faults.chance, run.plan.fault_steps);
    world_ring_at(&faults.next, world.now_ns + random_below(&faults.chance, run.plan.fault_ns + 1));
}

static void strike(const struct fault *fault, uint64_t us, uint64_t pick)
{
    char text[80];
    int n = snprintf(text, sizeof text, "%s, %" PRIu64 " us, %" PRIu64, fault->name, us, pick);
    trace_note(TRACE_FAULT, 0, text, (size_t)n);
    scenario_note(SCENARIO_FAULTS, fault->name, us, pick, 0);
    run.faults++;
    run.is_faultless = run.is_faultless && fault->is_harmless;
    fault->strike(us * US, pick);
}

static void on_next(struct bell *bell)
{
    (void)bell;
    if (world.now_ns < faults.rest_ns) {
        faults.next_step = UINT64_MAX;
        world_ring_at(&faults.next, faults.rest_ns);
        return;
    }
    const struct fault *fault = draw();
    uint64_t us = random_scale(&faults.chance, SPELL_MAX_US);
    strike(fault, us, random_next(&faults.chance) >> 16);
    plan_next();
}

/* ---- the same again ---- */

static void plan_again(void)
{
    const struct line *line = scenario_peek(SCENARIO_FAULTS);
    faults.next_step = UINT64_MAX;
    if (line != NULL)
        world_ring_at(&faults.next, SIM_START_NS + line->at_ns);
}

static void strike_again(void)
{
    const struct line *line = scenario_peek(SCENARIO_FAULTS);
    scenario_take(SCENARIO_FAULTS);
    for (size_t i = 0; i < N_FAULTS; i++)
        if (strcmp(table[i].name, line->name) == 0)
            strike(&table[i], line->numbers[0], line->numbers[1]);
    plan_again();
}

/* It is time. In the same step too, if that comes soon: there may be many at the same time. */
static void on_next_again(struct bell *bell)
{
    const struct line *line = scenario_peek(SCENARIO_FAULTS);
    bool is_late = world.now_ns - SIM_START_NS >= line->at_ns + STEP_PATIENCE_NS;
    if (world.steps >= line->step || is_late) {
        strike_again();
        return;
    }
    faults.next_step = line->step;
    world_ring_at(bell, SIM_START_NS + line->at_ns + STEP_PATIENCE_NS);
}

void faults_start(void)
{
    faults.next_step = UINT64_MAX;
    random_init(&faults.chance, run.plan.seed, STREAM_FAULTS);
    faults.next.ring = scenario_is_replayed() ? on_next_again : on_next;
    faults.over.ring = on_over;
    if (scenario_is_replayed())
        plan_again();
    else if (run.plan.fault_ns > 0)
        plan_next();
}

void faults_look(void)
{
    if (world.steps < faults.next_step)
        return;
    if (scenario_is_replayed())
        strike_again();
    else
        on_next(&faults.next);
}

void faults_end(void)
{
    faults.next_step = UINT64_MAX;
    world_silence(&faults.next);
    world_silence(&faults.over);
    get_well();
}
