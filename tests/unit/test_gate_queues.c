/* Tests of commands that wait in the queues of several limits at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dice.h"
#include "funnel_law.h"
#include "gate_kit.h"
#include "limit/queue.h"

#define KINDS 3
#define CLIENTS 200
#define GONE 40000

/* A client that sends the same command again without a pause. */
struct client {
    const char *command;
    size_t kind;
    uint64_t headed_ns, rings_ns;
    uint64_t waited_longest_ns;
    uint32_t waited_for;
    struct queue_positions positions;
};

/* classes: all and read; all and write; all */
static const char *const names[KINDS] = {"get", "set", "publish"};
static struct client clients[CLIENTS];
static struct admitted gone[KINDS][GONE];
static size_t n_gone[KINDS];

static struct client *first_to_ring(size_t n)
{
    struct client *first = &clients[0];
    for (size_t i = 1; i < n; i++)
        if (clients[i].rings_ns < first->rings_ns)
            first = &clients[i];
    return first;
}

static void ring(struct client *client, uint64_t now_ns, uint64_t lateness_ns, uint64_t *seed)
{
    struct gate_request wish = ask_of(client->command, 1, now_ns);
    wish.headed_ns = client->headed_ns;
    wish.waited_for = client->waited_for;
    wish.positions = client->waited_for != 0 ? &client->positions : NULL;
    enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
    if (gate == GATE_WAIT) {
        client->positions = verdict.positions;
        client->waited_for = 1U + verdict.limit->id;
        client->rings_ns = now_ns + (uint64_t)verdict.wait_ns +
                           (lateness_ns > 0 ? dice_below(seed, lateness_ns) : 0);
        return;
    }
    assert_int_equal(gate, GATE_PASS);
    gone[client->kind][n_gone[client->kind]++] = (struct admitted){now_ns, 1};
    if (now_ns - client->headed_ns > client->waited_longest_ns)
        client->waited_longest_ns = now_ns - client->headed_ns;
    client->waited_for = 0;
    client->headed_ns = client->rings_ns = now_ns;
}

/* Runs counts[kind] clients of each kind for `for_ns`, with timers up to `lateness_ns` late. */
static void go(const size_t counts[KINDS], uint64_t for_ns, uint64_t lateness_ns)
{
    uint64_t seed = 1;
    size_t n = 0;
    for (size_t kind = 0; kind < KINDS; kind++) {
        n_gone[kind] = 0;
        for (size_t i = 0; i < counts[kind]; i++, n++)
            clients[n] = (struct client){
                .command = names[kind], .kind = kind, .headed_ns = START, .rings_ns = START};
    }
    for (uint64_t now_ns = START;;) {
        struct client *client = first_to_ring(n);
        now_ns = client->rings_ns > now_ns ? client->rings_ns : now_ns;
        if (now_ns > START + for_ns)
            return;
        ring(client, now_ns, lateness_ns, &seed);
    }
}

static uint64_t slowest(size_t kind)
{
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < CLIENTS && clients[i].command; i++)
        if (clients[i].kind == kind && clients[i].waited_longest_ns > longest_ns)
            longest_ns = clients[i].waited_longest_ns;
    return longest_ns;
}

/* Checks limit `index` against the commands of the kinds with a bit in `kinds`. */
static void assert_law(size_t index, unsigned kinds)
{
    static struct admitted all[KINDS * GONE];
    size_t n = 0;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; kinds >> kind & 1 && i < n_gone[kind]; i++)
            all[n++] = gone[kind][i];
    const struct rate *rate = &policy->limits[index].rate;
    __int128 slack = (__int128)rate->period_ns + (__int128)rate->count * (DEPARTURE_SLACK_NS + 1);
    __int128 at_once = (__int128)rate->burst * rate->period_ns;
    if (!law_holds_with(all, n, rate, slack > at_once ? slack : at_once))
        fail_msg("%s", policy->limits[index].label);
}

static void begin(const char *read, const char *write, const char *all)
{
    tear_down(NULL);
    set_up(NULL);
    memset(clients, 0, sizeof clients);
    memset(n_gone, 0, sizeof n_gone);
    if (read)
        limit("read", read);
    if (write)
        limit("write", write);
    limit("all", all);
    open_gate();
}

static void assert_rate(size_t kind, uint64_t per_s, uint64_t for_ns)
{
    uint64_t wanted = per_s * for_ns / S;
    if (n_gone[kind] * 100 < wanted * 97)
        fail_msg("%s: %u and not %u", names[kind], (unsigned)n_gone[kind], (unsigned)wanted);
}

/*
 * Each client gets the rate of the narrowest limit that binds it, or its fair share where that
 * limit is shared. A client takes nothing from other clients that it cannot use. Late timers do not
 * break the limits.
 */
static void several_queues_lose_nobody_s_time(void **state)
{
    (void)state;
    static const struct {
        const char *read, *write, *all;
        size_t clients[KINDS];
        uint64_t per_s[KINDS];
        uint64_t slowest_ms[KINDS];
    } cases[] = {
        {"50/s over delay 1d", NULL, "100/s over delay 1d", {50, 50}, {50, 50}, {1050, 1050}},
        {"50/s over delay 1d", NULL, "100/s over delay 1d", {80, 20}, {50, 50}, {1650, 450}},
        {"50/s over delay 1d", NULL, "100/s over delay 1d", {20, 80}, {20, 80}, {1050, 1050}},
        {"50/s over delay 1d", NULL, "100/s over delay 1d", {8, 8}, {50, 50}, {200, 200}},
        /* lower bounds; a read waits in two queues */
        {"30/s over delay 1d", NULL, "100/s over delay 1d", {50, 50}, {25, 70}, {2100, 750}},
        {"50/s over delay 1d", NULL, "70/s over delay 1d", {50, 50}, {35, 35}, {1500, 1500}},
        {"500/s over delay 1d", NULL, "100/s over delay 1d", {180, 10}, {94, 5}, {2000, 2000}},
        {"1/s over delay 1d", NULL, "100/s over delay 1d", {40, 50}, {1, 99}, {41000, 600}},
        {"50/s burst 10 over delay 1d",
         NULL,
         "100/s burst 20 over delay 1d",
         {50, 50},
         {50, 50},
         {1050, 1050}},
        {"10/s over delay 1d",
         "10/s over delay 1d",
         "20/s over delay 1d",
         {60, 60},
         {10, 10},
         {6200, 6200}},
        {"50/s over delay 1d",
         "40/s over delay 1d",
         "80/s over delay 1d",
         {60, 60, 60},
         {26, 26, 25},
         {2400, 2400, 2400}},
        {"50/s over delay 1d",
         "40/s over delay 1d",
         "200/s over delay 1d",
         {60, 60, 60},
         {47, 37, 110},
         {1500, 2000, 1100}},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        size_t at = i / 2;
        begin(cases[at].read, cases[at].write, cases[at].all);
        go(cases[at].clients, 60 * S, i % 2 * MS);
        for (size_t kind = 0; kind < KINDS; kind++) {
            assert_rate(kind, cases[at].per_s[kind], 60 * S);
            assert_true(slowest(kind) <= cases[at].slowest_ms[kind] * MS);
        }
        assert_law(0, 1);
        if (cases[at].write)
            assert_law(1, 2);
        assert_law(policy->n_limits - 1, 7);
    }
}

/* More queues than a command keeps positions for. */
static void six_queues(void **state)
{
    (void)state;
    memset(clients, 0, sizeof clients);
    limit("read", "50/s over delay 1d, 60/s over delay 1d, 3000/m over delay 1d");
    limit("cost", "70/s over delay 1d");
    limit("all", "100/s over delay 1d, 110/s over delay 1d");
    open_gate();
    go((const size_t[]){50, 50, 0}, 60 * S, MS);
    assert_rate(0, 33, 60 * S);
    assert_rate(1, 33, 60 * S);
    for (size_t index = 0; index < 6; index++)
        assert_law(index, index < 3 ? 1 : 7);
    uint64_t admitted = atomic_load(&counters(0)->admitted);
    /* once each, plus commands that have a position */
    assert_true(admitted >= n_gone[0] && admitted <= n_gone[0] + 50);
}

/*
 * A command that is due in one queue goes before later commands of the other queue, which move
 * back.
 */
static void who_has_waited_goes_ahead(void **state)
{
    (void)state;
    begin(NULL, "2/s over delay 2s", "10/s over delay 1s");
    assert_int_equal(ask("set", 1, START), GATE_PASS);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 500 * MS);
    struct client set = {.command = "set",
                         .kind = 1,
                         .waited_for = 1U + verdict.limit->id,
                         .positions = verdict.positions};
    struct client gets[8];
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(ask("get", 1, START), GATE_WAIT);
        gets[i] = (struct client){
            .command = "get", .waited_for = 1U + verdict.limit->id, .positions = verdict.positions};
        gets[i].rings_ns = START + (uint64_t)verdict.wait_ns;
        assert_int_equal(gets[i].rings_ns, START + (i + 1) * 100 * MS);
        gets[i].headed_ns = set.headed_ns = START;
    }
    uint64_t seed = 1;
    for (size_t i = 0; i < 5; i++) {
        ring(&gets[i], gets[i].rings_ns, 0, &seed);
        assert_int_equal(n_gone[0], i + 1);
    }
    assert_int_equal(word(1), START + 900 * MS);
    ring(&set, START + 500 * MS, 0, &seed); /* the fifth has just departed */
    assert_int_equal(n_gone[1], 0);
    assert_int_equal(set.rings_ns, START + 600 * MS);
    assert_int_equal(set.positions.n, 2);
    assert_int_equal(word(1), START + 1000 * MS);
    ring(&gets[5], START + 600 * MS, 0, &seed);
    assert_int_equal(gets[5].rings_ns, START + 700 * MS);
    ring(&set, START + 600 * MS, 0, &seed);
    assert_int_equal(n_gone[1], 1);
    for (size_t i = 5; i < 8; i++) {
        for (uint64_t at_ns = 0; n_gone[0] <= i && at_ns < gets[i].rings_ns;)
            ring(&gets[i], at_ns = gets[i].rings_ns, 0, &seed);
        assert_int_equal(gone[0][i].at_ns, START + (i + 2) * 100 * MS);
    }
    assert_counters(0, 2, 1, 0, 0);
    assert_counters(1, 10, 9, 0, 0);
    /* departed late: the next command finds this word */
    assert_int_equal(word(0), START + 1100 * MS - DEPARTURE_SLACK_NS);
}

/*
 * A due command that would exceed the delay of its other queue is refused, and leaves both queues.
 */
static void who_has_waited_may_be_refused(void **state)
{
    (void)state;
    begin(NULL, "2/s over delay 2s", "1/10s burst 2 over delay 1s");
    assert_int_equal(ask("set", 1, START), GATE_PASS);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    struct gate_request wish = ask_of("set", 1, START + 500 * MS);
    const struct queue_positions positions = verdict.positions;
    wish.headed_ns = START;
    wish.waited_for = 1U + verdict.limit->id;
    wish.positions = &positions;
    assert_int_equal(ask("publish", 1, START + 100 * MS), GATE_PASS);
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_REFUSE);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    gate_leave(&positions, limit_counters);
    assert_int_equal(word(0), START + 500 * MS);
    assert_int_equal(word(1), START + 20 * S);
    assert_counters(0, 1, 1, 0, 0);
    assert_counters(1, 2, 0, 1, 0);
}

/*
 * The client of the first timer that fires by now_ns, as on a worker. The timer of a command that
 * has moved back is put off. NULL: none.
 */
static struct client *ring_next(size_t n, uint64_t now_ns)
{
    struct client *first;
    while ((first = first_to_ring(n))->rings_ns <= now_ns) {
        uint64_t due_ns = gate_positions_due(&first->positions);
        if (due_ns <= first->rings_ns)
            return first;
        first->rings_ns = due_ns;
    }
    return NULL;
}

/* Asks again for a client after its timer has fired. True if the client's command departs. */
static bool goes(struct client *client, uint64_t now_ns)
{
    struct gate_request wish = ask_of("publish", 1, now_ns);
    wish.headed_ns = START;
    wish.waited_for = client->waited_for;
    wish.positions = &client->positions;
    enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
    client->positions = verdict.positions;
    client->rings_ns = gate == GATE_PASS ? UINT64_MAX : now_ns + (uint64_t)verdict.wait_ns;
    return gate == GATE_PASS;
}

/*
 * However late a worker's timers are, and however many fire at once, commands depart in order of
 * arrival.
 */
static void late_alarms_keep_the_order(void **state)
{
    static const char *const lines[] = {"100/s over delay 1d", "100/s burst 3 over delay 1d",
                                        "1000/s over delay 1d"};
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t dice_state = seed, now_ns = START;
        size_t n_left = CLIENTS, next = 0;
        tear_down(NULL);
        set_up(NULL);
        limit("all", lines[seed % (sizeof lines / sizeof lines[0])]);
        open_gate();
        while (ask("publish", 1, START) == GATE_PASS)
            continue;
        for (size_t i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){.rings_ns = START + (uint64_t)verdict.wait_ns,
                                         .waited_for = 1U + verdict.limit->id,
                                         .positions = verdict.positions};
            assert_int_equal(ask("publish", 1, START), GATE_WAIT);
        }
        while (n_left > 0) {
            struct client *rung[CLIENTS + 1];
            size_t n = 0;
            now_ns += dice_below(&dice_state, 50 * MS);
            while ((rung[n] = ring_next(CLIENTS, now_ns)) != NULL)
                rung[n++]->rings_ns = UINT64_MAX;
            for (size_t i = 0; i < n; i++) {
                if (!goes(rung[i], now_ns))
                    continue;
                if (rung[i] != &clients[next++])
                    fail_msg("seed %u: %zu goes, and it is %zu's turn", (unsigned)seed,
                             (size_t)(rung[i] - clients), next - 1);
                n_left--;
            }
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(several_queues_lose_nobody_s_time), TEST(six_queues),
        TEST(who_has_waited_goes_ahead),         TEST(who_has_waited_may_be_refused),
        TEST(late_alarms_keep_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
