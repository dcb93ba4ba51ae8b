#include "tests/sim/masters.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/listen_address.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"
#include "tests/sim/travellers.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define STEP_NS (400 * MS)   /* longest time between two steps of most moves */
#define LONG_STEP_NS (3 * S) /* longest time between two steps of the other moves */
#define PARTED_NS (900 * MS) /* redirect-timeout, roughly */
#define DOWN_NS (3 * S)      /* longest time a node is down */
#define LIES_NS (5 * S)      /* longest time a node lies */
#define NOTICED_NS (2 * S)   /* time after which a lie has no effect any more */
#define MOVES_MAX 4          /* moves at a time */
#define QUESTIONS_MOST 10    /* questions in QUESTIONS_NS */
/* less than 1 s: questions sent in a second may arrive closer together */
#define QUESTIONS_NS (900 * MS)

enum { STREAM_CLUSTER = 40, STREAM_MOVE = 41 };

enum step { STEP_NONE, STEP_IMPORT, STEP_MIGRATE, STEP_KEYS, STEP_TAKE, STEP_GIVE, STEP_TELL };

/* A slot that moves. */
struct move {
    struct bell bell;
    struct random chance;
    enum step next;
    unsigned slot, from, to;
    unsigned left; /* next node to learn of the move */
    uint64_t step_ns;
};

static struct cluster {
    uint8_t owners[REDIS_SLOTS];
    /* when the last move began and ended; 0: not yet */
    uint64_t opened_ns[REDIS_SLOTS], closed_ns[REDIS_SLOTS];
    unsigned n_moves[REDIS_SLOTS]; /* moves that were not given up */
    uint64_t epoch;
    struct move moves[MOVES_MAX];
    struct bell risen; /* rings when `down` is up again */
    unsigned down;
    struct bell honest; /* rings when `liar` is truthful again */
    unsigned liar;
    bool has_lied;
    bool has_named_next;        /* a lie has named another node */
    uint8_t known[REDIS_SLOTS]; /* a bit for each node that has had the slot, or imported it */
    uint64_t honest_ns;         /* when the last lie ended */
    uint64_t asked_ns[QUESTIONS_MOST];
    unsigned n_asked;
} cluster;

/* ---- the plan ---- */

static void configure(struct plan *plan, bool splits_all)
{
    char listen[256];
    listen_address_config(0, listen, sizeof listen);
    snprintf(
        plan->config, sizeof plan->config,
        "[weir]\n%supstream = cluster:127.0.0.1:%u, 127.0.0.2:%u\nfair-share = on\nworkers = %u\n%s%s"
        "[policy default]\nadmin = no\n",
        listen, SERVER_PORT, SERVER_PORT, plan->workers,
        plan->is_pure ? "failover-wait = 10s\n" : "", splits_all ? "cross-slot = split-all\n" : "");
}

void masters_plan(struct plan *plan)
{
    struct random chance;
    random_init(&chance, plan->seed, STREAM_CLUSTER);
    struct plan was = *plan;
    *plan = (struct plan){
        .seed = was.seed, .steps = was.steps, .workers = was.workers, .pipeline = was.pipeline};
    plan->tick_ns = was.tick_ns;
    plan->turn_ns = was.turn_ns;
    plan->command_ns = was.command_ns;
    plan->redis_turn = was.redis_turn;
    plan->stops_amid = was.stops_amid;
    plan->stops_at_once = was.stops_at_once;
    plan->odds = was.odds;
    plan->odds.fds = KERNEL_FDS_ENOUGH;
    plan->n_regimes = 1;
    plan->redis = (struct redis_config){
        .seed = was.redis.seed, .version = was.redis.version, .is_cluster = true};
    plan->redis.is_valkey = was.redis.is_valkey;
    plan->masters = 2 + (unsigned)random_below(&chance, MASTERS_MAX - 1);
    plan->is_pure = random_hits(&chance, 500000);
    plan->may_close = true;
    plan->fault_ns = 20 * MS + random_scale(&chance, 1000 * MS);
    plan->fault_steps = 1000 + random_scale(&chance, 4000);
    plan->has_pairs = random_hits(&chance, 400000);
    configure(plan, random_hits(&chance, 500000));
}

bool masters_has(const char *fault, bool is_on_link)
{
    static const char *const always[] = {"slot_moves", "reload", "wall_clock"};
    static const char *const mixed[] = {"node_restarts", "node_lies",   "redis_silent",
                                        "redis_slow",    "redis_clock", "starved",
                                        "system_short",  "descriptors", "redis_garbles"};
    bool is_own = false;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        is_own |= strcmp(fault, always[i]) == 0;
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
        is_own |= !run.plan.is_pure && strcmp(fault, mixed[i]) == 0;
    return is_own || (is_on_link && !run.plan.is_pure);
}

/* ---- a move ---- */

static void tell(const char *what, unsigned slot, unsigned node)
{
    char text[64];
    int n = snprintf(text, sizeof text, "slot %u %s %u", slot, what, node);
    trace_note(TRACE_FAULT, 0, text, (size_t)n);
}

/* A node learns the slots of another node. */
static void hear_of(unsigned which, unsigned other)
{
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        if (cluster.owners[slot] == other)
            redis_own(server_redis_of(which), slot, slot, other, cluster.epoch);
}

static void migrate_key(struct move *move)
{
    struct redis *from = server_redis_of(move->from), *to = server_redis_of(move->to);
    if (redis_move_key(from, to, move->slot))
        tell("has a key that is now at", move->slot, move->to);
}

/* A move is given up only before a key has moved, or was created at the new owner. */
static bool gives_up(struct move *move)
{
    if (redis_has_key_in(server_redis_of(move->to), move->slot) ||
        !random_hits(&move->chance, 150000))
        return false;
    redis_migrate(server_redis_of(move->from), move->slot, REDIS_NOBODY);
    redis_import(server_redis_of(move->to), move->slot, REDIS_NOBODY);
    cluster.closed_ns[move->slot] = world.now_ns;
    move->next = STEP_NONE;
    tell("stays at", move->slot, move->from);
    return true;
}

static void take_step(struct move *move)
{
    struct redis *from = server_redis_of(move->from), *to = server_redis_of(move->to);
    switch (move->next) {
    case STEP_IMPORT:
        cluster.known[move->slot] |= (uint8_t)(1U << move->to);
        redis_import(to, move->slot, move->from);
        tell("is expected at", move->slot, move->to);
        move->next = STEP_MIGRATE;
        break;
    case STEP_MIGRATE:
        redis_migrate(from, move->slot, move->to);
        cluster.opened_ns[move->slot] = world.now_ns;
        cluster.closed_ns[move->slot] = 0;
        tell("leaves", move->slot, move->from);
        move->next = STEP_KEYS;
        break;
    case STEP_KEYS:
        if (gives_up(move))
            break;
        migrate_key(move);
        if (!redis_has_key_in(from, move->slot))
            move->next = STEP_TAKE;
        break;
    case STEP_TAKE:
        cluster.owners[move->slot] = (uint8_t)move->to;
        cluster.n_moves[move->slot]++;
        redis_own(to, move->slot, move->slot, move->to, ++cluster.epoch);
        tell("is at", move->slot, move->to);
        move->next = STEP_GIVE;
        break;
    case STEP_GIVE:
        hear_of(move->from, move->to);
        cluster.closed_ns[move->slot] = world.now_ns;
        tell("is no longer at", move->slot, move->from);
        move->left = 0;
        move->next = STEP_TELL;
        break;
    case STEP_TELL:
        if (move->left != move->from && move->left != move->to)
            hear_of(move->left, move->to);
        if (++move->left == run.plan.masters)
            move->next = STEP_NONE;
        break;
    case STEP_NONE:
        break;
    }
}

static void on_move(struct bell *bell)
{
    struct move *move = container_of(bell, struct move, bell);
    take_step(move);
    if (move->next != STEP_NONE)
        world_ring_at(bell, world.now_ns + random_scale(&move->chance, move->step_ns));
}

static bool is_moving(unsigned slot)
{
    bool is = false;
    for (unsigned i = 0; i < MOVES_MAX; i++)
        is |= cluster.moves[i].next != STEP_NONE && cluster.moves[i].slot == slot;
    return is;
}

void masters_move_slot(uint64_t ns, uint64_t pick)
{
    unsigned slot = travellers_slot(pick);
    struct move *move = NULL;
    (void)ns;
    server_lead((unsigned)(pick / 16 % run.plan.masters));
    for (unsigned i = 0; i < MOVES_MAX && move == NULL; i++)
        move = cluster.moves[i].next == STEP_NONE ? &cluster.moves[i] : NULL;
    if (move == NULL || is_moving(slot))
        return;
    random_init(&move->chance, pick, STREAM_MOVE);
    move->slot = slot;
    move->from = cluster.owners[slot];
    move->to = (move->from + 1 + (unsigned)random_below(&move->chance, run.plan.masters - 1)) %
               run.plan.masters;
    move->step_ns =
        random_scale(&move->chance, random_hits(&move->chance, 200000) ? LONG_STEP_NS : STEP_NS);
    move->next = STEP_IMPORT;
    on_move(&move->bell);
}

bool masters_was_parted(unsigned slot, uint64_t said_ns)
{
    uint64_t opened_ns = cluster.opened_ns[slot], closed_ns = cluster.closed_ns[slot];
    uint64_t end_ns = closed_ns != 0 ? closed_ns : world.now_ns;
    return opened_ns != 0 && end_ns >= said_ns && end_ns - opened_ns >= PARTED_NS;
}

bool masters_was_open(unsigned slot, uint64_t since_ns)
{
    uint64_t closed_ns = cluster.closed_ns[slot];
    return cluster.opened_ns[slot] != 0 && (closed_ns == 0 || closed_ns >= since_ns);
}

bool masters_moved_again(unsigned slot, uint64_t said_ns)
{
    return cluster.n_moves[slot] > 1 && cluster.opened_ns[slot] >= said_ns;
}

/* ---- nodes ---- */

static void on_risen(struct bell *bell)
{
    (void)bell;
    if (!server_is_up_one(cluster.down))
        server_rise_one(cluster.down);
}

void masters_restart_node(uint64_t ns, uint64_t pick)
{
    if (cluster.risen.due.place != 0)
        return;
    cluster.down = (unsigned)(pick / 2 % run.plan.masters);
    server_fall_one(cluster.down, pick % 2 == 0);
    world_ring_at(&cluster.risen, world.now_ns + ns % DOWN_NS);
}

static void on_honest(struct bell *bell)
{
    (void)bell;
    redis_lie_about(server_redis_of(cluster.liar), REDIS_IS_HONEST);
    cluster.honest_ns = world.now_ns;
}

void masters_let_lie(uint64_t ns, uint64_t pick)
{
    static const enum redis_lie lies[] = {REDIS_NAMES_STRANGERS, REDIS_NAMES_ITSELF,
                                          REDIS_NAMES_THE_NEXT};
    if (cluster.honest.due.place != 0)
        return;
    cluster.liar = (unsigned)(pick / 4 % run.plan.masters);
    cluster.has_lied = true;
    cluster.has_named_next |= lies[pick % 3] == REDIS_NAMES_THE_NEXT;
    redis_lie_about(server_redis_of(cluster.liar), lies[pick % 3]);
    world_ring_at(&cluster.honest, world.now_ns + ns % LIES_NS);
}

bool masters_has_lied(uint64_t said_ns)
{
    return cluster.has_lied &&
           (cluster.honest.due.place != 0 || said_ns <= cluster.honest_ns + NOTICED_NS);
}

/* ---- laws ---- */

unsigned masters_dialled(const struct sockaddr_in *address)
{
    uint32_t which = ntohl(address->sin_addr.s_addr) - SERVER_HOST(0);
    if (which < run.plan.masters && ntohs(address->sin_port) == SERVER_PORT)
        return which;
    run_blame("cluster", "an address that is no node's");
    run_fail(0, "weir dials %08x:%u, which is no node's address", ntohl(address->sin_addr.s_addr),
             ntohs(address->sin_port));
}

/* The first key of a command that travellers send. NULL: no key. */
static const struct slice *first_key(const struct slice *argv, size_t argc)
{
    static const char *const names[] = {"get", "set", "incr", "mget", "mset", "exists"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (argc > 1 && slice_eq_nocase(argv[0], slice_str(names[i])))
            return &argv[1];
    return argc > 3 && slice_eq_nocase(argv[0], SLICE("eval")) ? &argv[3] : NULL;
}

/*
 * Checks that the node has had the command's slot, or has imported it. A false redirect that names
 * another node may lead a command to that node. A false redirect to a stranger leads nowhere.
 */
static void judge_slot(unsigned which, const struct slice *argv, size_t argc)
{
    const struct slice *key = first_key(argv, argc);
    unsigned known = key != NULL ? cluster.known[redis_slot_of(*key)] : 0;
    if (key == NULL || cluster.has_named_next || (known >> which & 1U) != 0)
        return;
    run_blame("cluster", "a node that never had the slot");
    run_fail(server_answering().conn, "weir sends slot %u to a node that has never had it",
             redis_slot_of(*key));
}

void masters_hear(unsigned which, const struct redis_conn *conn, const struct slice *argv,
                  size_t argc)
{
    /* MULTI may be sent before weir knows any key */
    if (run.plan.masters > 0 && !redis_conn_is_in_multi(conn))
        judge_slot(which, argv, argc);
    if (argc != 2 || !slice_eq_nocase(argv[0], SLICE("cluster")) ||
        !slice_eq_nocase(argv[1], SLICE("nodes")))
        return;
    uint64_t *asked_ns = &cluster.asked_ns[cluster.n_asked++ % QUESTIONS_MOST];
    bool is_often = cluster.n_asked > QUESTIONS_MOST && world.now_ns - *asked_ns < QUESTIONS_NS;
    *asked_ns = world.now_ns;
    if (!is_often || !run.plan.is_pure)
        return;
    run_blame("cluster", "too many questions");
    run_fail(server_answering().conn, "the nodes are asked more than %u times in a second",
             QUESTIONS_MOST);
}

/* ---- start and end ---- */

void masters_start(void)
{
    static const char *const ids[MASTERS_MAX] = {
        "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222",
        "3333333333333333333333333333333333333333", "4444444444444444444444444444444444444444"};
    static const char *const hosts[MASTERS_MAX] = {"127.0.0.1", "127.0.0.2", "127.0.0.3",
                                                   "127.0.0.4"};
    struct redis_node nodes[MASTERS_MAX];
    cluster =
        (struct cluster){.risen.ring = on_risen, .honest.ring = on_honest, .epoch = MASTERS_MAX};
    for (unsigned i = 0; i < MOVES_MAX; i++)
        cluster.moves[i].bell.ring = on_move;
    for (unsigned i = 0; i < run.plan.masters; i++)
        nodes[i] = (struct redis_node){ids[i], hosts[i], SERVER_PORT};
    for (unsigned slot = 0; slot < REDIS_SLOTS && run.plan.masters > 0; slot++)
        cluster.owners[slot] = (uint8_t)(slot * run.plan.masters / REDIS_SLOTS);
    for (unsigned slot = 0; slot < REDIS_SLOTS && run.plan.masters > 0; slot++)
        cluster.known[slot] = (uint8_t)(1U << cluster.owners[slot]);
    for (unsigned i = 0; i < run.plan.masters; i++) {
        redis_join(server_redis_of(i), nodes, run.plan.masters, i);
        for (unsigned k = 0; k < run.plan.masters; k++)
            hear_of(i, k);
    }
}

/* Completes the move at once. */
static void finish(struct move *move)
{
    world_silence(&move->bell);
    if (move->next == STEP_NONE)
        return;
    while (redis_move_key(server_redis_of(move->from), server_redis_of(move->to), move->slot))
        continue;
    cluster.owners[move->slot] = (uint8_t)move->to;
    redis_own(server_redis_of(move->to), move->slot, move->slot, move->to, ++cluster.epoch);
    cluster.closed_ns[move->slot] = world.now_ns;
    move->next = STEP_NONE;
    for (unsigned i = 0; i < run.plan.masters; i++)
        hear_of(i, move->to);
}

void masters_end(void)
{
    for (unsigned i = 0; i < MOVES_MAX; i++)
        finish(&cluster.moves[i]);
    if (cluster.risen.due.place != 0) {
        world_silence(&cluster.risen);
        on_risen(&cluster.risen);
    }
    if (cluster.honest.due.place != 0) {
        world_silence(&cluster.honest);
        on_honest(&cluster.honest);
    }
}

void masters_stop(void)
{
    for (unsigned i = 0; i < MOVES_MAX; i++)
        world_silence(&cluster.moves[i].bell);
    world_silence(&cluster.risen);
    world_silence(&cluster.honest);
}
