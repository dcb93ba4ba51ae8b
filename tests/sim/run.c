#include "tests/sim/admin.h"
#include "tests/sim/run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "run/config/config_build.h"
#include "run/config/config_file.h"
#include "run/proxy.h"
#include "tests/sim/aborts.h"
#include "tests/sim/client.h"
#include "tests/sim/masters.h"
#include "tests/sim/counters.h"
#include "tests/sim/deployment.h"
#include "tests/sim/faults.h"
#include "tests/sim/hangs.h"
#include "tests/sim/heap.h"
#include "tests/sim/lane_laws.h"
#include "tests/sim/links.h"
#include "tests/sim/loops.h"
#include "tests/sim/moves.h"
#include "tests/sim/operator.h"
#include "tests/sim/regime.h"
#include "tests/sim/ops_exact.h"
#include "tests/sim/ops_place.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"
#include "tests/sim/travellers.h"
#include "tests/sim/wait_laws.h"
#include "upstream/script.h"

#define TOLD_OF_EACH 40
#define WEIRS_START_BYTES (INT64_C(16) << 20)
/* time after the last reply by which everything under way has ended */
#define CALM_NS (UINT64_C(5) * 1000000000)
#define SETTLE_NS (UINT64_C(120) * 1000000000) /* longest wait for a reply without faults */
#define STOP_NS (UINT64_C(70) * 1000000000)    /* drain-timeout, and the longest starvation */

struct run run;

static const char users[] = "user " SERVER_ADMIN " on >" SERVER_ADMIN " ~* &* +@all\n"
                            "user u1 on >pw1.0 >pw1.1 >pw1.2 >pw1.3 ~* &* +@all\n"
                            "user u2 on >pw2.0 >pw2.1 >pw2.2 >pw2.3 ~* &* +@all\n"
                            "user u3 on >pw3.0 >pw3.1 >pw3.2 >pw3.3 ~* &* +@all\n";

/* shared with the process that started this one; NULL: not shared */
static struct outcome *outcome;

void run_share_outcome(struct outcome *out)
{
    outcome = out;
}

void run_blame(const char *what, const char *why)
{
    if (outcome != NULL)
        snprintf(outcome->blame, sizeof outcome->blame, "%s: %s", what, why);
}

static void tell_end(void)
{
    if (outcome == NULL)
        return;
    outcome->digest = trace_digest();
    outcome->commands = run.commands;
}

void run_fail(unsigned conn, const char *format, ...)
{
    va_list args;
    (void)conn;
    if (outcome != NULL && outcome->blame[0] == '\0')
        run_blame("run", format);
    tell_end();
    scenario_note_failure();
    trace_tell(stderr, TOLD_OF_EACH);
    fprintf(stderr,
            "sim: FAILED seed %" PRIu64 " steps %" PRIu64 " at step %" PRIu64 " after %" PRIu64
            " commands: ",
            run.plan.seed, run.plan.steps, world.steps, run.commands);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(1);
}

/* ---- phases ---- */

static void settle(void)
{
    run.phase = RUN_SETTLES;
    run.settle_ns = world.now_ns;
    deployment_end();
    masters_end();
    faults_end();
    aborts_end();
    clients_wake();
}

static void stop(void)
{
    run.phase = RUN_STOPS;
    run.stop_ns = world.now_ns;
    deployment_end();
    masters_end();
    faults_end();
    aborts_end();
    counters_leave();
    travellers_leave();
    if (!run.plan.stops_amid) {
        clients_leave();
        operator_leave();
    }
    loop_signal(run.plan.stops_at_once ? SIGINT : SIGTERM);
    clients_wake();
}

/* With constant faults clients hardly send anything, so steps and faults limit the run too. */
static bool is_long_enough(void)
{
    if (scenario_is_replayed())
        return run.commands >= run.plan.steps || scenario_is_over();
    return run.commands >= run.plan.steps || world.steps > 50 * run.plan.steps ||
           run.faults > run.plan.steps / 20 + 10;
}

static void on_later(struct bell *bell)
{
    (void)bell;
}

/* No client waits: a request that is sent now is the only one. */
static void ask_alone(void)
{
    static struct bell later = {.ring = on_later};
    if (run.calm_ns == 0) {
        run.calm_ns = world.now_ns;
        clients_leave_unheard();
        world_ring_at(&later, world.now_ns + CALM_NS);
    }
    if (world.now_ns < run.calm_ns + CALM_NS)
        return;
    run.is_calm = true;
    if (!clients_ask_one())
        stop();
    run.settle_ns = world.now_ns; /* the client may wait as long as clients before */
}

static void look_at_waiting(void)
{
    const struct client *waiting = clients_waiting();
    bool is_late = world.now_ns - run.settle_ns > SETTLE_NS;
    if (is_late && counters_are_waiting())
        run_fail(0, "a counter waits for an answer for ever");
    if (is_late && travellers_are_waiting())
        run_fail(0, "a traveller waits for an answer for ever");
    if (waiting == NULL && !operator_is_waiting() && !counters_are_waiting() &&
        !travellers_are_waiting())
        ask_alone();
    else if (is_late && waiting == NULL)
        run_fail(operator_conn()->number, "the operator waits for an answer for ever");
    else if (is_late)
        run_fail(waiting->conn->number, "client %u (connection %u) waits for %u answers for ever",
                 waiting->number, waiting->conn->number, waiting->n_expected);
}

/*
 * A rough check: memory may grow between two checks of weir, and weir has some memory at its start.
 */
static void look_at_memory(void)
{
    if (heap_weirs_bytes() < WEIRS_START_BYTES + 2 * (INT64_C(4) << 20) ||
        !regime_says("memory-limit = 4mb\n"))
        return;
    run_blame("run", "much more memory than its limit");
    run_fail(0,
             "weir has %" PRId64 " bytes of memory, and may have 4 MB beside what it starts with",
             heap_weirs_bytes());
}

static void look_at_lanes(void)
{
    const char *broken = lane_laws_broken();
    if (broken == NULL)
        return;
    run_blame("lanes", broken);
    run_fail(0, "%s", broken);
}

static void look_at_waits(void)
{
    const char *broken = wait_laws_broken();
    if (broken == NULL)
        return;
    run_blame("waits", broken);
    run_fail(0, "%s", broken);
}

static void on_step(void)
{
    regime_look();
    look_at_lanes();
    look_at_waits();
    if (world.steps % 64 == 0)
        look_at_memory();
    if (run.phase == RUN_ACTS && is_long_enough()) {
        scenario_note_end();
        if (run.plan.stops_amid)
            stop();
        else
            settle();
    } else if (run.phase == RUN_ACTS) {
        faults_look();
    } else if (run.phase == RUN_SETTLES && world.steps % 16 == 0) {
        look_at_waiting();
    } else if (run.phase == RUN_STOPS && world.now_ns - run.stop_ns > STOP_NS) {
        run_fail(0, "weir does not stop");
    }
}

/* ---- weir ---- */

static void report(void *arg, bool is_error, const char *line)
{
    (void)arg;
    trace_note(TRACE_LOG, 0, line, strlen(line));
    if (is_error)
        run_fail(0, "the configuration is bad: %s", line);
}

static int serve(void)
{
    char *arguments[] = {NULL};
    const struct program program = {"weir", arguments};
    struct command_table *builtin = command_table_builtin();
    struct config_file file = {.path = CONFIG_PATH, .report = report};
    struct config *config = config_read(&file, builtin);
    log_set_level(LOG_DEBUG);
    clients_start(run.plan.clients);
    operator_start();
    faults_start();
    aborts_start();
    counters_start();
    travellers_start();
    on_world_step = on_step;
    (void)heap_is_weirs(true);
    int status = proxy_run(config, &file, builtin, &program);
    (void)heap_is_weirs(false);
    config_file_fini(&file);
    config_free(config);
    command_table_put(builtin);
    return status;
}

static void on_script(struct slice key, uint64_t now_us)
{
    exact_heard(key, now_us);
    place_heard(key);
}

/* Bytes that are allocated now and were not before the run have leaked. */
static void check_memory(size_t before)
{
    size_t after = heap_bytes();
    if (after == before)
        return;
    run_blame("run", "memory that is not given back");
    run_fail(0, "%zd bytes of memory are not given back", (ssize_t)(after - before));
}

void run_note_version(void)
{
    uint32_t version = run.plan.redis.version;
    run.oldest = run.oldest == 0 || version < run.oldest ? version : run.oldest;
    run.newest = version > run.newest ? version : run.newest;
}

static void read_log(struct slice line)
{
    static const char refused[] = "configuration not reloaded",
                      told[] = "configuration reloaded from ";
    static const char of_operator[] = ", by ";
    memory_read_log(line);
    if (memmem(line.at, line.len, refused, sizeof refused - 1) != NULL)
        regime_reload_refused();
    if (memmem(line.at, line.len, told, sizeof told - 1) != NULL &&
        memmem(line.at, line.len, of_operator, sizeof of_operator - 1) == NULL)
        regime_reload_told();
}

void run_prepare(void)
{
    static char out[BUFSIZ];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    tzset();
    trace_clear();
    (void)command_table_known();
    for (int i = 0; i < SCRIPT_COUNT; i++)
        redis_prepare(script_source((enum script)i));
}

int run_all(const struct plan *plan)
{
    uint64_t seed = plan->seed;
    size_t memory_before = heap_bytes();
    errno = 0;
    run = (struct run){.is_faultless = true, .plan = *plan};
    world_init(seed);
    world.tick_ns = run.plan.tick_ns;
    world.turn_ns = run.plan.turn_ns;
    kernel_init(seed);
    kernel.odds = run.plan.odds;
    run.is_faultless = !run.plan.may_close;
    run.plan.redis.users = users;
    run_note_version();
    run.plan.redis.on_script = on_script;
    run.plan.redis.on_stuck = admin_hear_stuck;
    run.plan.redis.on_not_run = hangs_note_not_run;
    run.plan.redis.requirepass = run.plan.has_password ? PASSWORD : NULL;
    memory_start();
    kernel.on_logged = read_log;
    moves_start();
    server_start(&run.plan.redis, run.plan.redis_turn, run.plan.command_ns);
    deployment_start();
    masters_start();
    regime_start();
    int status = serve();
    clients_stop();
    operator_stop();
    aborts_stop();
    counters_stop();
    travellers_stop();
    deployment_stop();
    masters_stop();
    server_stop();
    links_fini();
    if (kernel.n_open > 0)
        run_fail(0, "%u descriptors are left open", kernel.n_open);
    kernel_fini();
    memory_fini();
    printf("sim: seed %" PRIu64 ": %" PRIu64 " commands, %" PRIu64 " replies, %" PRIu64
           " faults, %" PRIu64 " steps, %.3f s, digest %016" PRIx64 "\n",
           seed, run.commands, run.replies, run.faults, world.steps,
           (double)(world.now_ns - SIM_START_NS) / 1e9, trace_digest());
    tell_end();
    world_fini();
    check_memory(memory_before);
    return status;
}
