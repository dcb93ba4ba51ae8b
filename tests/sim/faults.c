#include "tests/sim/faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/admin.h"
#include "tests/sim/client.h"
#include "tests/sim/masters.h"
#include "tests/sim/deployment.h"
#include "tests/sim/links.h"
#include "tests/sim/loops.h"
#include "tests/sim/moves.h"
#include "tests/sim/lag.h"
#include "tests/sim/operator.h"
#include "tests/sim/ops_place.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sentinel_model.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define STEP_PATIENCE_NS (10 * MS)
#define SPELL_MAX_US 20000000 /* longest duration of a fault */
#define CROWD_NS (45000 * MS) /* time after which every earlier fault is over */
#define REST_NS (61000 * MS)  /* weir closes what is unused for a minute */

enum { STREAM_FAULTS = 5, STREAM_RECOVERY = 9 };

static struct faults {
    /* advances the clock to next_ns, or to the moment that a scenario waits for */
    struct bell next;
    uint64_t next_ns, next_step;
    uint64_t rest_ns; /* no party does anything before this time */
    struct bell over; /* rings when the current fault ends */
    struct bell crowded;
    uint64_t replies;      /* run.replies when the waiting clients of a crowd were last checked */
    bool has_new_password; /* Redis has a password that weir does not know */
    struct random chance;
    struct random recovery;        /* a stream of its own: a scenario draws no faults */
    bool is_armed;                 /* replaying: the meter has reached the line's bytes ... */
    uint64_t armed_ns, armed_step; /* ... at this time and step */
} faults;

/* The meter with the bytes that determine when the fault strikes. */
enum fault_meter { METER_WEIR, METER_REDIS };

struct fault {
    const char *name;
    unsigned weight;
    bool is_harmless; /* no connection is closed because of the fault */
    enum fault_meter meter;
    /*
     * ns: how long the fault lasts. pick: which of several variants. Both numbers are drawn for
     * each fault.
     */
    void (*strike)(uint64_t ns, uint64_t pick);
};

/* ---- Redis ---- */

static void hit_lane(uint64_t ns, uint64_t pick)
{
    struct conn *conn = server_picked(pick);
    if (conn != NULL)
        links_strike(conn, ns / US, pick / 256);
}

static void garble_lane(uint64_t ns, uint64_t pick)
{
    (void)ns;
    server_garble(pick);
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
    server_rise(keeps_data, &run.plan.redis);
    admin_note_restart();
}

static void restart(uint64_t ns, uint64_t pick)
{
    if (!server_is_up())
        return;
    server_fall(pick % 2 == 0);
    rise(pick % 8 < 4);
    if (pick % 3 == 0)
        redis_load(server_redis(), ns / 1000);
}

/* Redis restarts as another release. All of these releases have equal commands to subscribe. */
static void upgrade(uint64_t ns, uint64_t pick)
{
    static const uint32_t versions[] = {70015, 70206, 70401, 80001};
    uint32_t version = versions[pick / 8 % (sizeof versions / sizeof versions[0])];
    if (run.plan.redis.version >= versions[0]) {
        run.plan.redis.version = version;
        run.plan.redis.is_valkey = version == 80001;
        run_note_version();
    }
    restart(ns, pick);
}

/* Redis restarts with another password. weir learns the password by a reload, later. */
static void restart_otherwise(uint64_t ns, uint64_t pick)
{
    if (!run.plan.has_password || run.plan.may_change_password || !server_is_up())
        return;
    run.passwords++;
    run.plan.redis.requirepass = run.passwords % 2 == 0 ? PASSWORD : OTHER_PASSWORD;
    restart(ns, pick);
    faults.has_new_password = true;
    world_ring_at(&faults.over, world.now_ns + ns);
}

static void hush(uint64_t ns, uint64_t pick)
{
    (void)pick;
    server_sleep(ns);
}

/* Every command takes some time. */
static void slow_down(uint64_t ns, uint64_t pick)
{
    server_slow(pick % (20 * MS));
    world_ring_at(&faults.over, world.now_ns + ns);
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
    struct odds *odds = &kernel.odds;
    uint32_t *const all[] = {&odds->accept_short, &odds->accept_aborted, &odds->socket_short,
                             &odds->watch_short,  &odds->refuse,         &odds->drop,
                             &odds->unreachable,  &odds->timed_out,      &odds->broken};
    size_t n_all = sizeof all / sizeof all[0];
    uint32_t often = (uint32_t)(pick / n_all % 500000);
    uint32_t *which = all[pick % n_all];
    *which = which == &odds->broken ? often / 100 : often;
    world_ring_at(&faults.over, world.now_ns + ns);
}

/* Limits the descriptors to those in use and a few more. */
static void run_out(uint64_t ns, uint64_t pick)
{
    kernel.odds.fds = kernel.n_open + (uint32_t)(pick % 4);
    world_ring_at(&faults.over, world.now_ns + ns);
}

/* Steps the wall clock of weir's machine. */
static void step_wall(uint64_t ns, uint64_t pick)
{
    kernel.wall_ns += pick % 2 == 0 ? (int64_t)ns : -(int64_t)ns;
}

/* ---- clients ---- */

static void hit_client(uint64_t ns, uint64_t pick)
{
    struct client *client = client_picked(pick);
    if (client != NULL)
        links_strike(client->conn, ns / US, pick / 256);
}

static void lose_client(uint64_t ns, uint64_t pick)
{
    struct client *client = client_picked(pick);
    if (client != NULL)
        links_strike_now(client->conn, false, pick % 2 == 0 ? "reset" : "half", ns / US, 0);
}

/* A client stops reading. */
static void blind_client(uint64_t ns, uint64_t pick)
{
    struct client *client = client_picked(pick);
    if (client != NULL)
        links_strike_now(client->conn, false, pick % 2 == 0 ? "full" : "late", ns / US, 0);
}

static void hit_operator(uint64_t ns, uint64_t pick)
{
    if (operator_conn() != NULL)
        links_strike(operator_conn(), ns / US, pick);
}

static void rest_until(uint64_t ns)
{
    faults.rest_ns = ns;
    operator_rest(ns);
}

/* No party acts for more than a minute, so weir closes what is unused. Then all act at once. */
static void rest_all(uint64_t ns, uint64_t pick)
{
    (void)pick;
    rest_until(world.now_ns + REST_NS + ns);
    clients_rest(faults.rest_ns);
}

/*
 * All clients log in at once, then no client sends anything for long. All clients must be answered.
 */
static void crowd(uint64_t ns, uint64_t pick)
{
    (void)pick;
    rest_until(world.now_ns + CROWD_NS + ns);
    clients_crowd(faults.rest_ns);
    faults.replies = UINT64_MAX;
    world_ring_at(&faults.crowded, world.now_ns + CROWD_NS);
}

/*
 * A client with several requests for permits waits for each in order. The rest goes on as long as
 * any client gets replies.
 */
static void on_crowded(struct bell *bell)
{
    const struct client *waiting = clients_waiting();
    if (waiting == NULL)
        return;
    if (faults.replies != run.replies) {
        faults.replies = run.replies;
        rest_until(world.now_ns + CROWD_NS);
        clients_rest(faults.rest_ns);
        world_ring_at(bell, world.now_ns + CROWD_NS);
        return;
    }
    run_fail(waiting->conn->number,
             "client %u (connection %u) still waits for %u answers after a crowd", waiting->number,
             waiting->conn->number, waiting->n_expected);
}

/* ---- the name ---- */

static void move(uint64_t ns, uint64_t pick)
{
    (void)ns;
    moves_away(pick, false);
}

static void move_and_die(uint64_t ns, uint64_t pick)
{
    (void)ns;
    moves_away(pick, true);
}

/* ---- the administrator ---- */

/* Changes the password. Nothing else happens until weir has noticed the change. */
static void change_password(uint64_t ns, uint64_t pick)
{
    (void)pick;
    if (!run.plan.may_change_password)
        return;
    admin_change_password();
    rest_until(world.now_ns + ADMIN_PASSWORD_NS + ns);
    clients_rest(faults.rest_ns);
}

/* ---- weir itself ---- */

static void reload(uint64_t ns, uint64_t pick)
{
    (void)ns;
    regime_reload(pick);
}

static const struct fault table[] = {
    {"lane", 20, true, METER_REDIS, hit_lane}, /* links.c decides whether the fault is harmless */
    {"redis_down", 3, false, METER_REDIS, fall},
    {"redis_restart", 3, false, METER_REDIS, restart},
    {"redis_upgrade", 1, false, METER_REDIS, upgrade},
    {"redis_password", 3, false, METER_REDIS, restart_otherwise},
    {"redis_silent", 5, false, METER_REDIS, hush},
    {"redis_slow", 3, false, METER_REDIS, slow_down},
    {"redis_clock", 3, true, METER_REDIS, step_clock},
    {"starved", 5, false, METER_WEIR, starve},
    {"system_short", 7, false, METER_WEIR, run_short},
    {"descriptors", 3, false, METER_WEIR, run_out},
    {"wall_clock", 3, true, METER_WEIR, step_wall},
    {"client", 20, true, METER_WEIR, hit_client},
    {"client_gone", 6, true, METER_WEIR, lose_client},
    {"client_blind", 6, true, METER_WEIR, blind_client},
    {"operator", 2, true, METER_WEIR, hit_operator},
    {"reload", 8, true, METER_WEIR, reload},
    {"rest", 2, true, METER_WEIR, rest_all},
    {"crowd", 2, true, METER_WEIR, crowd},
    {"memory", 2, true, METER_REDIS, admin_need_memory},
    {"replicas", 2, true, METER_REDIS, admin_need_replicas},
    {"disk", 2, true, METER_REDIS, admin_need_disk},
    {"master", 2, false, METER_REDIS, admin_need_master},
    {"flush", 2, true, METER_REDIS, admin_flush},
    {"scripts_flush", 3, true, METER_REDIS, admin_flush_scripts},
    {"script_kill", 5, true, METER_REDIS, admin_kill_script},
    {"pause", 3, false, METER_REDIS, admin_pause},
    {"kill", 3, false, METER_REDIS, admin_kill},
    {"user", 3, false, METER_REDIS, admin_lock_user},
    {"token", 4, false, METER_REDIS, admin_take_token},
    {"password", 3, false, METER_REDIS, change_password},
    {"move", 4, true, METER_REDIS, move},
    {"move_dead", 3, false, METER_REDIS, move_and_die},
    {"name", 2, true, METER_REDIS, moves_lose_name},
    {"redis_garbles", 5, false, METER_REDIS, garble_lane},
    {"failover", 12, false, METER_REDIS, deployment_fail_over},
    {"server_killed", 8, false, METER_REDIS, deployment_kill},
    {"server_hangs", 5, false, METER_REDIS, deployment_hang},
    {"server_cut", 5, false, METER_REDIS, deployment_cut},
    {"sentinel", 12, false, METER_REDIS, sentinel_model_fail},
    {"replica_lags", 12, false, METER_REDIS, lag_begin},
    {"server_loads", 4, false, METER_REDIS, deployment_load},
    {"slot_moves", 60, true, METER_REDIS, masters_move_slot},
    {"node_restarts", 4, false, METER_REDIS, masters_restart_node},
    {"node_lies", 6, false, METER_REDIS, masters_let_lie},
};
#define N_FAULTS (sizeof table / sizeof table[0])

/* Faults on connections note themselves in the scenario. */
static bool is_on_link(const struct fault *fault)
{
    return fault->strike == hit_lane || fault->strike == hit_client ||
           fault->strike == lose_client || fault->strike == blind_client ||
           fault->strike == hit_operator;
}

static unsigned weight_of(const struct fault *fault)
{
    bool is_of_name =
        fault->strike == move || fault->strike == move_and_die || fault->strike == moves_lose_name;
    bool is_of_servers =
        strncmp(fault->name, "failover", 8) == 0 || strncmp(fault->name, "server_", 7) == 0;
    is_of_servers |= fault->strike == sentinel_model_fail || fault->strike == lag_begin;
    bool is_of_cluster = fault->strike == masters_move_slot ||
                         fault->strike == masters_restart_node || fault->strike == masters_let_lie;
    if (run.plan.masters > 0 || is_of_cluster)
        return run.plan.masters > 0 && masters_has(fault->name, is_on_link(fault)) ? fault->weight
                                                                                   : 0;
    bool is_away =
        run.plan.servers > 0 ? !deployment_has(fault->name, is_on_link(fault)) : is_of_servers;
    return (is_of_name && !run.plan.has_name) || is_away ? 0 : fault->weight;
}

static const struct fault *draw(void)
{
    uint64_t whole = 0, drawn;
    for (size_t i = 0; i < N_FAULTS; i++)
        whole += weight_of(&table[i]);
    drawn = random_below(&faults.chance, whole);
    for (size_t i = 0; i < N_FAULTS; i++) {
        if (drawn < weight_of(&table[i]))
            return &table[i];
        drawn -= weight_of(&table[i]);
    }
    return &table[0];
}

static void get_well(void)
{
    kernel.odds = run.plan.odds;
    server_slow(run.plan.command_ns);
    if (!server_is_up() && run.plan.servers == 0 && run.plan.masters == 0)
        rise(random_hits(&faults.recovery, 700000));
    if (faults.has_new_password)
        regime_write_password();
    faults.has_new_password = false;
}

static void on_over(struct bell *bell)
{
    (void)bell;
    trace_note(TRACE_FAULT, 0, "over", 4);
    get_well();
}

/*
 * Plans the next fault by time or by steps, whichever comes first. A run may be a second of many
 * steps, or an hour of few steps.
 */
static void plan_next(void)
{
    faults.next_step = world.steps + 1 + random_below(&faults.chance, run.plan.fault_steps);
    faults.next_ns = world.now_ns + 1 + random_below(&faults.chance, run.plan.fault_ns + 1);
    world_ring_at(&faults.next, faults.next_ns);
}

static const struct meter *meter_of(enum fault_meter meter)
{
    return meter == METER_REDIS ? &kernel.asked : &kernel.heard;
}

/* When the meter last moved; before it has moved, the start. */
static uint64_t moved_ns(const struct meter *meter)
{
    return meter->bytes > 0 ? meter->last_ns : SIM_START_NS;
}

static uint64_t moved_step(const struct meter *meter)
{
    return meter->bytes > 0 ? meter->last_step : 0;
}

static void note(const struct fault *fault, uint64_t us, uint64_t pick)
{
    const struct meter *meter = meter_of(fault->meter);
    struct line line = {.party = SCENARIO_FAULTS,
                        .numbers = {fault->meter, meter->bytes, world.now_ns - moved_ns(meter),
                                    world.steps - moved_step(meter), world.now_ns - SIM_START_NS,
                                    us, pick}};
    snprintf(line.name, sizeof line.name, "%s", fault->name);
    scenario_note_line(&line);
}

static void strike(const struct fault *fault, uint64_t us, uint64_t pick)
{
    char text[80];
    if (!is_on_link(fault)) {
        int n = snprintf(text, sizeof text, "%s, %" PRIu64 " us, %" PRIu64, fault->name, us, pick);
        trace_note(TRACE_FAULT, 0, text, (size_t)n);
        note(fault, us, pick);
        run.faults++;
    }
    run.is_faultless = run.is_faultless && fault->is_harmless;
    place_upset(us * US);
    fault->strike(us * US, pick);
}

static void strike_next(void)
{
    if (world.now_ns < faults.rest_ns) {
        faults.next_step = UINT64_MAX;
        faults.next_ns = faults.rest_ns;
        world_ring_at(&faults.next, faults.next_ns);
        return;
    }
    const struct fault *fault = draw();
    uint64_t us = random_scale(&faults.chance, SPELL_MAX_US);
    strike(fault, us, random_next(&faults.chance) >> 16);
    plan_next();
}

/* ---- replay ---- */

/* The numbers of a fault's line in a scenario. */
enum { OF_METER, OF_BYTES, OF_WAIT_NS, OF_WAIT_STEPS, OF_TIME, OF_US, OF_PICK };

static void strike_again(const struct line *line)
{
    scenario_take(SCENARIO_FAULTS);
    for (size_t i = 0; i < N_FAULTS; i++)
        if (strcmp(table[i].name, line->name) == 0)
            strike(&table[i], line->numbers[OF_US], line->numbers[OF_PICK]);
    faults.is_armed = false;
}

/*
 * Arms the fault at the time when the meter reached the bytes of the line, or now if the meter has
 * moved beyond these bytes.
 */
static void arm(const struct line *line)
{
    const struct meter *meter = meter_of((enum fault_meter)line->numbers[OF_METER]);
    if (meter->bytes < line->numbers[OF_BYTES])
        return;
    bool is_exact = meter->bytes == line->numbers[OF_BYTES];
    faults.is_armed = true;
    faults.armed_ns = is_exact ? moved_ns(meter) : world.now_ns;
    faults.armed_step = is_exact ? moved_step(meter) : world.steps;
}

/*
 * True if the fault is due. A fault does not wait for bytes that never come: without the clients
 * that would send them it strikes at its recorded time. There may be many steps at one moment.
 */
static bool is_time(const struct line *line, uint64_t *look_ns)
{
    const uint64_t *numbers = line->numbers;
    uint64_t late_ns = SIM_START_NS + numbers[OF_TIME] + STEP_PATIENCE_NS;
    uint64_t due_ns = faults.armed_ns + numbers[OF_WAIT_NS];
    *look_ns = late_ns;
    if (!faults.is_armed)
        return world.now_ns >= late_ns;
    *look_ns = world.now_ns < due_ns ? due_ns : due_ns + STEP_PATIENCE_NS;
    bool has_stepped = world.steps >= faults.armed_step + numbers[OF_WAIT_STEPS];
    return world.now_ns >= due_ns && (has_stepped || world.now_ns >= due_ns + STEP_PATIENCE_NS);
}

static void look_again(void)
{
    const struct line *line;
    uint64_t look_ns;
    while ((line = scenario_peek(SCENARIO_FAULTS)) != NULL) {
        if (!faults.is_armed)
            arm(line);
        if (!is_time(line, &look_ns)) {
            if (faults.next.due.place == 0 || faults.next.due.at != look_ns)
                world_ring_at(&faults.next, look_ns);
            return;
        }
        strike_again(line);
    }
}

/* Faults strike between two steps, in a run as in its scenario. The bell only advances time. */
static void on_next(struct bell *bell)
{
    (void)bell;
}

void faults_start(void)
{
    links_start();
    faults.next_ns = faults.next_step = UINT64_MAX;
    random_init(&faults.chance, run.plan.seed, STREAM_FAULTS);
    random_init(&faults.recovery, run.plan.seed, STREAM_RECOVERY);
    faults.next.ring = on_next;
    faults.over.ring = on_over;
    faults.crowded.ring = on_crowded;
    admin_start();
    scenario_begin();
    if (scenario_is_replayed())
        scenario_arm_links();
    else if (run.plan.fault_ns > 0)
        plan_next();
}

void faults_look(void)
{
    links_look();
    if (scenario_is_replayed())
        look_again();
    else if (world.steps >= faults.next_step || world.now_ns >= faults.next_ns)
        strike_next();
}

bool faults_are_over(void)
{
    for (unsigned i = 0; loop_number(i) != NULL; i++)
        if (loop_number(i)->party.asleep_ns > world.now_ns)
            return false;
    return memcmp(&kernel.odds, &run.plan.odds, sizeof kernel.odds) == 0 &&
           faults.over.due.place == 0 && !links_are_waiting() && faults.rest_ns <= world.now_ns;
}

void faults_rest(uint64_t ns)
{
    rest_until(world.now_ns + ns);
}

void faults_end(void)
{
    faults.next_ns = faults.next_step = UINT64_MAX;
    world_silence(&faults.next);
    world_silence(&faults.over);
    world_silence(&faults.crowded);
    links_end();
    if (run.plan.odds.fds < KERNEL_FDS_ENOUGH)
        place_served();
    run.plan.odds.fds = KERNEL_FDS_ENOUGH;
    get_well();
    admin_rest();
}
