#include "tests/sim/deployment.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/lag.h"
#include "tests/sim/run.h"
#include "tests/sim/sentinel_model.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define VACANT_NS (4 * S)  /* longest time without a master; less than WAIT */
#define WAIT "10s"         /* equal to DEPLOYMENT_WAIT_NS */
#define STALE_NS (10 * S)  /* longest time for which a former master calls itself master */
#define LONG_NS (12 * S)   /* longer than clients wait for a master */
#define LEFT_NS (3 * S)    /* time after which no client writes to the old master */
#define NOTICED_NS (5 * S) /* time after which weir knows that a server is gone */

static struct deployment {
    unsigned master;      /* the master; without a master, the last master */
    unsigned next;        /* the server that becomes the master; equal to `master`: none */
    unsigned amiss;       /* the server with a fault */
    bool is_cut;          /* the fault is a cut network */
    uint64_t mended_ns;   /* when the last fault ended */
    struct bell promoted; /* rings when `next` becomes the master */
    struct bell mended;   /* rings when the fault of `amiss` ends */
    unsigned stale;       /* a server that calls itself master and is not */
    uint64_t stays_ns;    /* how long the next replaced server calls itself master */
    struct bell given_up; /* rings when `stale` becomes a replica */
    /*
     * when the server lost the role of master, or became able to learn of the loss; 0: the server
     * is the master, or never was
     */
    uint64_t left_ns[SERVERS_MAX];
    /* the period in which a server failed silently and weir may not have known */
    uint64_t rough_from_ns, rough_until_ns;
} deployment;

void deployment_config(const struct plan *plan, char *out, size_t room)
{
    size_t n = 0;
    for (unsigned i = 0; i < plan->servers && !plan->has_sentinels; i++)
        n += (size_t)snprintf(out + n, room - n, "%s127.0.0.%u:%u", i > 0 ? ", " : "", i + 1,
                              SERVER_PORT);
    if (plan->has_sentinels)
        n += (size_t)snprintf(out, room, "%s", SENTINELS_LINE);
    n += (size_t)snprintf(out + n, room - n, "%s", plan->has_reads ? "\nreads = replicas" : "");
    snprintf(out + n, room - n, "\n%s", plan->is_pure ? "failover-wait = " WAIT "\n" : "");
}

bool deployment_is_pure(void)
{
    return run.plan.is_pure;
}

bool deployment_bears(const char *line, bool may_close)
{
    return !may_close && strncmp(line, "failover-wait", 13) != 0 &&
           strcmp(line, "lanes = private") != 0;
}

bool deployment_has(const char *fault, bool is_on_link)
{
    static const char *const always[] = {"client", "client_gone", "client_blind", "reload",
                                         "rest",   "crowd",       "wall_clock"};
    static const char *const mixed[] = {"redis_silent", "redis_slow",  "redis_clock",  "starved",
                                        "system_short", "descriptors", "redis_garbles"};
    bool is_own = strcmp(fault, "failover") == 0 || strncmp(fault, "server_", 7) == 0;
    is_own |= run.plan.has_reads && strcmp(fault, "replica_lags") == 0;
    is_own |= run.plan.has_sentinels && strcmp(fault, "sentinel") == 0;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        is_own |= strcmp(fault, always[i]) == 0;
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
        is_own |= !run.plan.is_pure && strcmp(fault, mixed[i]) == 0;
    return is_own || (is_on_link && !run.plan.is_pure);
}

/* ---- roles ---- */

static void tell(const char *what, unsigned which)
{
    char text[48];
    int n = snprintf(text, sizeof text, "server %u %s", which, what);
    trace_note(TRACE_FAULT, 0, text, (size_t)n);
}

static void follow(unsigned which, unsigned master)
{
    char host[24];
    snprintf(host, sizeof host, "127.0.0.%u", master + 1);
    redis_follow(server_redis_of(which), host, SERVER_PORT);
}

static void on_given_up(struct bell *bell)
{
    (void)bell;
    follow(deployment.stale, deployment.next);
}

/* The server still calls itself master. Only sentinels know that another server is the master. */
static void stay_master(unsigned which)
{
    deployment.stale = which;
    world_ring_at(&deployment.given_up, world.now_ns + deployment.stays_ns);
    deployment.stays_ns = 0;
    tell("goes on as a master", which);
}

static void promote(void)
{
    unsigned master = deployment.next, before = deployment.master;
    bool stays = deployment.stays_ns > 0 && before != master && server_is_up_one(before);
    world_silence(&deployment.promoted);
    for (unsigned i = 0; i < run.plan.servers; i++)
        if (i != master && !(i == before && stays))
            follow(i, master);
    if (stays)
        stay_master(before);
    if (before != master)
        deployment.left_ns[before] = world.now_ns;
    deployment.left_ns[master] = 0;
    redis_follow(server_redis_of(master), NULL, 0);
    deployment.master = master;
    sentinel_model_hear(master);
    lag_promote(master);
    server_lead(master);
    tell("is the master", master);
}

static void on_promoted(struct bell *bell)
{
    (void)bell;
    promote();
}

static void mend(void)
{
    unsigned which = deployment.amiss;
    world_silence(&deployment.mended);
    deployment.mended_ns = world.now_ns;
    if (deployment.is_cut)
        server_cut(which, false);
    deployment.is_cut = false;
    if (!server_is_up_one(which))
        server_rise_one(which);
    bool is_replaced = which != deployment.master || deployment.next != deployment.master;
    if (deployment.left_ns[which] != 0)
        deployment.left_ns[which] = world.now_ns;
    if (is_replaced && deployment.stays_ns > 0 && which != deployment.master)
        stay_master(which);
    else if (is_replaced)
        follow(which, deployment.next);
    tell("is well", which);
}

static void on_mended(struct bell *bell)
{
    (void)bell;
    mend();
}

static bool is_busy(void)
{
    return run.plan.servers == 0 || deployment.promoted.due.place != 0 ||
           deployment.mended.due.place != 0 || deployment.given_up.due.place != 0;
}

/* Another server becomes the master after after_ns. */
static void replace_master(uint64_t after_ns, uint64_t pick)
{
    deployment.next =
        (deployment.master + 1 + (unsigned)(pick % (run.plan.servers - 1))) % run.plan.servers;
    world_ring_at(&deployment.promoted, world.now_ns + after_ns);
}

static void note_rough(uint64_t ns)
{
    if (deployment.rough_until_ns < world.now_ns)
        deployment.rough_from_ns = world.now_ns;
    deployment.rough_until_ns = world.now_ns + ns + NOTICED_NS;
}

bool deployment_may_lose(uint64_t said_ns)
{
    return said_ns <= deployment.rough_until_ns && world.now_ns >= deployment.rough_from_ns;
}

/* ---- laws ---- */

/* When a fault ends, the server executes the commands that were sent before or during the fault. */
bool deployment_is_upset(unsigned which)
{
    bool is_back = world.now_ns >= deployment.mended_ns + NOTICED_NS;
    return which == deployment.amiss && (deployment.mended.due.place != 0 || !is_back);
}

void deployment_hear(unsigned which, const struct slice *argv, size_t argc)
{
    if (run.plan.servers == 0)
        return; /* `which` may be a node of a cluster, beyond the end of left_ns */
    lag_hear(which, argv, argc);
    bool is_counted = argc > 1 && argv[1].len > 6 && memcmp(argv[1].at, "count:", 6) == 0 &&
                      (argv[0].at[0] | 32) == 'i';
    uint64_t left_ns = deployment.left_ns[which];
    if (!is_counted || !run.plan.is_pure || left_ns == 0 || run.phase != RUN_ACTS ||
        world.now_ns < left_ns + LEFT_NS)
        return;
    run_blame("deployment", "a write to the master before");
    run_fail(server_answering().conn,
             "server %u is written to, and has not been the master for long", which);
}

/* ---- faults ---- */

void deployment_fail_over(uint64_t ns, uint64_t pick)
{
    if (is_busy())
        return;
    replace_master(pick / 4 % 2 == 0 ? 0 : ns % VACANT_NS, pick / 8);
    deployment.stays_ns =
        run.plan.has_sentinels && pick / 2 % 2 == 0 ? 1 + pick / 16 % STALE_NS : 0;
    if (deployment.stays_ns == 0)
        follow(deployment.master, deployment.next);
    if (deployment.promoted.due.at <= world.now_ns)
        promote();
}

/* Starts a fault of `ns` on one server. Another server may replace a master with a fault. */
static bool begin(uint64_t ns, uint64_t pick)
{
    if (is_busy())
        return false;
    deployment.amiss = pick % 4 == 0 ? (unsigned)(pick / 4 % run.plan.servers) : deployment.master;
    bool is_master = deployment.amiss == deployment.master;
    ns = pick / 8192 % 4 == 0 ? LONG_NS + ns % LONG_NS : ns;
    deployment.stays_ns =
        run.plan.has_sentinels && pick / 64 % 2 == 0 ? 1 + pick / 128 % STALE_NS : 0;
    uint64_t vacant_ns = pick / 16 % VACANT_NS;
    if (is_master && (pick / 8 % 4 != 0 || ns > VACANT_NS))
        replace_master(vacant_ns, pick / 32);
    world_ring_at(&deployment.mended, world.now_ns + ns);
    bool is_replaced = deployment.next != deployment.master;
    if (is_master || run.plan.has_reads)
        note_rough(is_master && is_replaced && !run.plan.has_reads ? vacant_ns
                   : ns > vacant_ns                                ? ns
                                                                   : vacant_ns);
    return true;
}

void deployment_kill(uint64_t ns, uint64_t pick)
{
    if (begin(ns, pick / 2))
        server_fall_one(deployment.amiss, pick % 2 == 0);
}

void deployment_hang(uint64_t ns, uint64_t pick)
{
    if (begin(ns, pick))
        server_sleep_one(deployment.amiss, ns);
}

void deployment_cut(uint64_t ns, uint64_t pick)
{
    if (!begin(ns, pick))
        return;
    deployment.is_cut = true;
    server_cut(deployment.amiss, true);
}

void deployment_load(uint64_t ns, uint64_t pick)
{
    if (!is_busy())
        redis_load(server_redis_of((unsigned)(pick % run.plan.servers)), ns % VACANT_NS / 1000);
}

/* ---- start and end ---- */

void deployment_start(void)
{
    deployment = (struct deployment){
        .promoted.ring = on_promoted, .mended.ring = on_mended, .given_up.ring = on_given_up};
    if (run.plan.servers == 0)
        return;
    deployment.next = (unsigned)(run.plan.seed / 2 % run.plan.servers);
    sentinel_model_start(deployment.next);
    lag_start();
    promote();
}

void deployment_end(void)
{
    if (deployment.promoted.due.place != 0)
        promote();
    if (deployment.mended.due.place != 0)
        mend();
    if (deployment.given_up.due.place != 0) {
        world_silence(&deployment.given_up);
        on_given_up(&deployment.given_up);
    }
    lag_end();
    if (run.plan.has_sentinels)
        sentinel_model_end();
}

void deployment_stop(void)
{
    world_silence(&deployment.promoted);
    world_silence(&deployment.mended);
    world_silence(&deployment.given_up);
    if (run.plan.has_sentinels)
        sentinel_model_stop();
}
