/* Is Redis kept busy, with a queue that is no longer than that takes, wherever processors are scarce? */
#include "schedule_kit.h"

#define FLOODS 10

struct found {
    double busy;       /* of the time that Redis had a processor, how much it worked */
    uint64_t queue_ns; /* the longest of late */
    uint64_t granted;  /* requests for each time that somebody was woken */
    double least;      /* the least that one of the tenants had, of its share */
};

/* Tenants that flood the open server, for `seconds`, of which the last half is looked at. */
static struct found flood_it(unsigned n, unsigned riders, uint64_t cost_ns, double seconds)
{
    struct tenant *tenants[FLOODS];
    struct found found = {.least = 1};
    unsigned turns = (unsigned)(seconds * 100000);
    uint64_t answered = 0;
    server->is_batching = true;
    for (unsigned i = 0; i < n; i++)
        tenants[i] = open_tenant(i + 1, riders, cost_ns);
    for (unsigned i = 0; i < turns / 2; i++)
        turn(tenants, n);
    server->worked_ns = server->most_ns = 0;
    for (unsigned i = 0; i < n; i++)
        tenants[i]->answered = 0;
    n_woken = 0;
    uint64_t began_ns = server->now_ns;
    for (unsigned i = 0; i < turns - turns / 2; i++)
        turn(tenants, n);
    const struct absence *absence = &server->absence;
    double there = absence->away_ns > 0 ? 1 - (double)absence->away_ns / (double)absence->period_ns : 1;
    found.busy = (double)server->worked_ns / ((double)(server->now_ns - began_ns) * there);
    found.queue_ns = server->most_ns;
    for (unsigned i = 0; i < n; i++)
        answered += tenants[i]->answered;
    found.granted = answered / (n_woken + 1);
    for (unsigned i = 0; i < n; i++) {
        double had = (double)tenants[i]->answered * n / (double)(answered + 1);
        found.least = had < found.least ? had : found.least;
    }
    for (unsigned i = 0; i < n; i++)
        close_tenant(tenants[i]);
    close_server();
    return found;
}

static struct found flood(unsigned n, unsigned riders, uint64_t cost_ns, struct absence redis, struct absence weir,
                          double seconds)
{
    open_server();
    server->absence = redis;
    server->weirs = weir;
    return flood_it(n, riders, cost_ns, seconds);
}

#define NEVER ((struct absence){0})
#define HALF ((struct absence){.period_ns = 8 * NS_PER_MS, .away_ns = 4 * NS_PER_MS})
#define MOSTLY ((struct absence){.period_ns = 7 * NS_PER_MS, .away_ns = 6 * NS_PER_MS})

static void assert_found(struct found found, double busy, uint64_t queue_ns)
{
    if (found.busy < busy || found.queue_ns > queue_ns || found.least < 0.9)
        fail_msg("busy %.3f, a queue of %.3f ms, a share of %.2f", found.busy, (double)found.queue_ns / NS_PER_MS,
                 found.least);
}

#define CHEAP 400 /* ns */
#define DEAR 25000
#define SLOW 300000

/* Redis answers all that has come at once, so a window of one batch would let it wait for the next. */
static void the_queue_is_as_long_as_keeps_redis_busy(void **state)
{
    (void)state;
    for (unsigned riders = 1; riders <= 4; riders += 3) {
        assert_found(flood(1, riders, CHEAP, NEVER, NEVER, 1), 0.93, 450 * NS_PER_US); /* all that it has at once */
        assert_found(flood(2, riders, CHEAP, NEVER, NEVER, 1), 0.93, 400 * NS_PER_US);
        assert_found(flood(10, riders, CHEAP, NEVER, NEVER, 1), 0.93, 400 * NS_PER_US);
        assert_found(flood(10, riders, DEAR, NEVER, NEVER, 1), 0.93, 2 * NS_PER_MS); /* 16 ways */
        assert_found(flood(10, riders, SLOW, NEVER, NEVER, 6), 0.93, 2 * NS_PER_MS);
    }
}

/* How far is told by a greeting; or, if the way has become longer since, by what weir asks Redis each second. */
static void redis_is_busy_though_it_is_far(void **state)
{
    (void)state;
    for (uint64_t way_ns = 100 * NS_PER_US; way_ns < 10 * NS_PER_MS; way_ns *= 4)
        for (uint64_t cost_ns = CHEAP; cost_ns < NS_PER_MS; cost_ns *= 10) {
            open_server_at(way_ns);
            assert_found(flood_it(3, 4, cost_ns, 4), 0.92, way_ns + 25 * NS_PER_MS);
            open_server();
            server->way_ns = way_ns;
            window_note_ping(&server->schedule.window, way_ns + WINDOW_QUEUE_NS);
            assert_found(flood_it(3, 4, cost_ns, 4), 0.85, way_ns + 25 * NS_PER_MS);
        }
}

/* Half of the time Redis, or weir, has no processor. */
static void redis_is_busy_where_processors_are_wanted(void **state)
{
    (void)state;
    for (unsigned riders = 1; riders <= 4; riders += 3) {
        for (unsigned n = 1; n <= FLOODS; n += FLOODS - 1) {
            assert_found(flood(n, riders, CHEAP, HALF, NEVER, 1), 0.9, 1 * NS_PER_MS);
            assert_found(flood(n, riders, CHEAP, NEVER, HALF, 2), 0.9, 12 * NS_PER_MS);
            assert_found(flood(n, riders, CHEAP, MOSTLY, HALF, 4), 0.9, 12 * NS_PER_MS);
            assert_found(flood(n, riders, 5 * CHEAP, MOSTLY, HALF, 4), 0.9, 12 * NS_PER_MS);
        }
        assert_found(flood(2, riders, DEAR, NEVER, HALF, 2), 0.9, 25 * NS_PER_MS);
    }
}

/*
 * A huge value keeps Redis from all others for 19 of 20 ms. Nobody takes what comes late then for their cost, nor for want of a
 * longer queue.
 */
static void what_is_not_counted_tells_nothing(void **state)
{
    (void)state;
    open_server();
    server->is_batching = true;
    struct tenant *tenants[] = {open_tenant(1, 50, CHEAP), open_tenant(2, 50, CHEAP)};
    server->absence = (struct absence){.period_ns = 20 * NS_PER_MS, .away_ns = 19 * NS_PER_MS};
    for (unsigned t = 0; t < 2; t++)
        tenants[t]->is_flood = false;
    for (unsigned i = 0; i < 200000; i++) {
        turn(tenants, 2);
        if (is_away(&server->absence, server->now_ns) || is_away(&server->absence, server->now_ns - 100 * NS_PER_US))
            schedule_note_huge(&server->schedule, 20 * NS_PER_US * SCHEDULE_HUGE_BYTES);
        if (i % 50 == 0)
            for (unsigned t = 0; t < 2; t++)
                ask(tenants[t], i / 50 % 50, 1);
        for (unsigned t = 0; t < 2; t++)
            for (unsigned r = 0; r < 50; r++)
                if (tenants[t]->paced[r]->granted > 0)
                    ask(tenants[t], r, 1);
    }
    assert_in_range(server->schedule.window.more_ns, 0, WINDOW_QUEUE_NS);
    for (unsigned t = 0; t < 2; t++)
        assert_in_range(tenants[t]->paced[0]->backlog->cost_ns, 0, 2 * SCHEDULE_COST_NS);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

/*
 * Dear commands are found out though their sender mixes parts of huge values in, or is told all the time that what one of his
 * riders has under way will not be answered.
 */
static void dear_ones_are_found_out_all_the_same(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        open_server();
        server->is_batching = true;
        struct tenant *tenants[] = {open_tenant(1, 4, 4 * DEAR), open_tenant(2, 4, CHEAP)};
        for (unsigned i = 0; i < 300000; i++) {
            turn(tenants, 2);
            if (way < 2 && i % 30 == 0)
                schedule_note_huge(&server->schedule, way == 0 ? 1 : 65536);
            if (way == 2 && i % 10 == 0)
                schedule_forget(tenants[0]->paced[0]);
            if (i == 150000)
                tenants[0]->answered = tenants[1]->answered = 0;
        }
        double had = (double)tenants[1]->answered * CHEAP;
        assert_true(had / (had + (double)tenants[0]->answered * 4 * DEAR) > 0.4);
        close_tenant(tenants[0]);
        close_tenant(tenants[1]);
        close_server();
    }
}

/*
 * A turn of weir's takes 5 ms, in which it answers others itself. When an answer came it then cannot tell, and does not take
 * its own time for Redis'.
 */
static void what_nobody_looked_for_tells_nothing(void **state)
{
    (void)state;
    open_server();
    server->is_batching = true;
    server->weirs = (struct absence){.period_ns = 5050 * NS_PER_US, .away_ns = 5 * NS_PER_MS};
    struct tenant *tenants[] = {open_tenant(1, 20, CHEAP), open_tenant(2, 1, CHEAP)};
    tenants[1]->is_flood = false;
    for (unsigned i = 0; i < 300000; i++) {
        turn(tenants, 2);
        if (i % 100 == 0 && !is_away(&server->weirs, server->now_ns))
            ask(tenants[1], 0, 1);
    }
    assert_in_range(tenants[0]->paced[0]->backlog->cost_ns, 0, 2 * SCHEDULE_COST_NS);
    for (unsigned t = 0; t < 2; t++)
        close_tenant(tenants[t]);
    close_server();
}

/* What takes a processor only for a while leaves no long queue behind, and soon. */
static void the_queue_becomes_short_again(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 4, CHEAP), open_tenant(2, 4, CHEAP)};
    server->is_batching = true;
    server->weirs = HALF;
    for (unsigned i = 0; i < 100000; i++)
        turn(tenants, 2);
    assert_true(window_size_ns(&server->schedule.window) > 2 * NS_PER_MS);
    server->weirs = NEVER;
    uint64_t since_ns = server->now_ns;
    while (window_size_ns(&server->schedule.window) > 400 * NS_PER_US && server->now_ns - since_ns < NS_PER_S)
        turn(tenants, 2);
    assert_in_range(server->now_ns - since_ns, 1, 200 * NS_PER_MS);
    for (unsigned i = 0; i < 100000; i++)
        turn(tenants, 2);
    server->most_ns = 0;
    for (unsigned i = 0; i < 10000; i++)
        turn(tenants, 2);
    assert_in_range(server->most_ns, 1, 400 * NS_PER_US);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

/* What is the longest queue that tenants who flood have lately, and how busy is Redis, where weir is away for a moment now and then? */
static struct found flood_with_pauses(bool has_sparse)
{
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 2, CHEAP), open_tenant(2, 2, CHEAP), open_tenant(3, 1, CHEAP)};
    struct found found = {0};
    server->is_batching = true;
    tenants[2]->is_flood = false;
    server->weirs = (struct absence){.period_ns = 3 * NS_PER_MS, .away_ns = 400 * NS_PER_US};
    for (unsigned i = 0; i < 100000; i++) {
        if (i == 50000)
            server->worked_ns = 0;
        turn(tenants, 3);
        if (has_sparse && i % 50 == 0)
            ask(tenants[2], 0, 1);
        uint64_t queue_ns = i > 50000 ? window_size_ns(&server->schedule.window) : 0;
        found.queue_ns = queue_ns > found.queue_ns ? queue_ns : found.queue_ns;
    }
    found.busy = (double)server->worked_ns / (double)(server->now_ns - NS_PER_S) * 2;
    for (unsigned i = 0; i < 3; i++)
        close_tenant(tenants[i]);
    close_server();
    return found;
}

/* The queue serves who waits; who sends little, and need not, pays for it. */
static void the_queue_is_shorter_beside_who_sends_little(void **state)
{
    (void)state;
    struct found alone = flood_with_pauses(false), beside = flood_with_pauses(true);
    if (beside.queue_ns >= alone.queue_ns * 3 / 4 || beside.busy < 0.8)
        fail_msg("%lu of %lu us, busy %.3f of %.3f", beside.queue_ns / 1000, alone.queue_ns / 1000, beside.busy,
                 alone.busy);
}

/* One asks for something that takes hundreds of times as long: that is not taken for a processor that is away. */
static void costs_that_change_make_no_long_queue(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 4, CHEAP), open_tenant(2, 4, CHEAP)};
    server->is_batching = true;
    for (unsigned i = 0; i < 100000; i++)
        turn(tenants, 2);
    for (; server->head != server->tail; server->now_ns += 10 * NS_PER_US)
        answer();
    tenants[0]->cost_ns = tenants[1]->cost_ns = SLOW;
    for (unsigned i = 0; i < 300000; i++)
        turn(tenants, 2);
    server->most_ns = 0;
    for (unsigned i = 0; i < 100000; i++)
        turn(tenants, 2);
    assert_in_range(server->most_ns, 1, 10 * SLOW);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

/* ---- costs ---- */

static uint64_t time_of(const struct tenant *tenant)
{
    return tenant->answered * tenant->cost_ns;
}

/* Each has half of the time of Redis, though each batch of answers has requests of both. */
static void check_dear(unsigned riders, uint64_t dear_ns)
{
    open_server();
    struct tenant *tenants[] = {open_tenant(1, riders, dear_ns), open_tenant(2, riders, CHEAP)};
    server->is_batching = true;
    for (unsigned i = 0; i < 200000; i++)
        turn(tenants, 2);
    tenants[0]->answered = tenants[1]->answered = server->worked_ns = 0;
    uint64_t began_ns = server->now_ns;
    for (unsigned i = 0; i < 100000; i++)
        turn(tenants, 2);
    double share = (double)time_of(tenants[1]) / (double)(time_of(tenants[0]) + time_of(tenants[1]));
    double busy = (double)server->worked_ns / (double)(server->now_ns - began_ns);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
    if (share < 0.35 || share > 0.65 || busy < 0.95)
        fail_msg("beside %.1f us: a share of %.3f, busy %.3f", (double)dear_ns / NS_PER_US, share, busy);
}

static void who_asks_for_what_is_dear_pays_for_it(void **state)
{
    (void)state;
    for (unsigned riders = 1; riders <= 4; riders += 3)
        for (uint64_t dear_ns = CHEAP; dear_ns < 3 * NS_PER_MS; dear_ns *= 3)
            check_dear(riders, dear_ns);
}

/* One command at a time on each connection, so dear that nothing could be let run dry for it in a moment. */
static void what_is_very_dear_is_found_out_too(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 20, 17 * NS_PER_MS), open_tenant(2, 4, CHEAP)};
    server->is_batching = true;
    tenants[0]->is_flood = false;
    for (unsigned i = 0; i < 600000; i++) {
        if (i == 300000)
            tenants[0]->answered = tenants[1]->answered = 0;
        turn(tenants, 2);
        for (unsigned rider = 0; rider < tenants[0]->n_riders; rider++)
            if (tenants[0]->paced[rider]->requests == 0)
                ask(tenants[0], rider, 1);
        if (i % 1000 == 0)
            schedule_tick(&server->schedule, server->now_ns);
    }
    double share = (double)time_of(tenants[1]) / (double)(time_of(tenants[0]) + time_of(tenants[1]));
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
    if (share < 0.35 || share > 0.65)
        fail_msg("a share of %.3f", share);
}

#define KINDS 6

static void tenants_of_all_kinds_have_the_same_time(void **state)
{
    (void)state;
    const uint64_t costs_ns[KINDS] = {CHEAP, 5 * CHEAP, DEAR, 10 * DEAR, SLOW, NS_PER_MS};
    struct tenant *tenants[KINDS];
    uint64_t all_ns = 0, least_ns = UINT64_MAX;
    open_server();
    server->is_batching = true;
    for (unsigned i = 0; i < KINDS; i++)
        tenants[i] = open_tenant(i + 1, 2, costs_ns[i]);
    for (unsigned i = 0; i < 200000; i++)
        turn(tenants, KINDS);
    for (unsigned i = 0; i < KINDS; i++)
        tenants[i]->answered = 0;
    for (unsigned i = 0; i < 300000; i++)
        turn(tenants, KINDS);
    for (unsigned i = 0; i < KINDS; i++) {
        all_ns += time_of(tenants[i]);
        least_ns = time_of(tenants[i]) < least_ns ? time_of(tenants[i]) : least_ns;
        close_tenant(tenants[i]);
    }
    close_server();
    assert_in_range(least_ns, all_ns / KINDS * 7 / 10, all_ns / KINDS);
}

/* Now for what is cheap, now for what is dear, and for each as long as the other: what part of the time others have. */
static double beside_who_changes_every(unsigned period)
{
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 2, CHEAP), open_tenant(2, 2, CHEAP)};
    server->is_batching = true;
    for (unsigned i = 0; i < 500000; i++) {
        turn(tenants, 2);
        if (i % period == 0)
            tenants[0]->cost_ns = CHEAP + DEAR - tenants[0]->cost_ns;
    }
    double part = (double)time_of(tenants[1]) / (double)server->worked_ns;
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
    return part;
}

static void assert_part(unsigned period, double least)
{
    double part = beside_who_changes_every(period);
    if (part < least || part > 0.8)
        fail_msg("beside who changes every %u turns: %.3f", period, part);
}

static void who_changes_what_it_asks_for_wins_little(void **state)
{
    (void)state;
    for (unsigned period = 100; period <= 200000; period = period * 5 / 3)
        assert_part(period, 0.25); /* least where there are about as many lessons as changes */
    assert_part(100, 0.4);
    assert_part(1000, 0.4);
    assert_part(100000, 0.4);
}

/* Its lesson is never answered: the others are served all the same. */
static void a_lesson_that_is_not_answered_ends(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 1, CHEAP), open_tenant(2, 1, CHEAP)};
    server->is_batching = true;
    for (unsigned i = 0; i < 1000000 && server->schedule.lesson.of != tenants[0]->paced[0]->backlog; i++)
        turn(tenants, 2);
    assert_ptr_equal(server->schedule.lesson.of, tenants[0]->paced[0]->backlog);
    for (size_t at = server->head; at != server->tail; at++)
        server->queue[at % 100000].n =
            server->queue[at % 100000].tenant == tenants[0] ? 0 : server->queue[at % 100000].n;
    tenants[0]->is_flood = false;
    uint64_t answered = tenants[1]->answered;
    for (unsigned i = 0; i < 100000; i++) {
        turn(tenants, 2);
        ask(tenants[0], 0, 0); /* it has nothing more to send */
        if (i % 1000 == 0)
            schedule_tick(&server->schedule, server->now_ns);
    }
    assert_true(tenants[1]->answered - answered > 1000000);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

/* ---- the queue ---- */

/* Answers each millisecond, of work that took a tenth of that. */
static void starve(struct send_window *window, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        window_watch(window, NS_PER_MS, NS_PER_MS / 10, 0, true);
}

/* Until it is measured: rather far than near, but no further than anything tells, nor as far as a busy Redis seems. */
static void how_far_it_is_is_guessed(void **state)
{
    (void)state;
    struct send_window window = {0};
    assert_int_equal(window_base_ns(&window), WINDOW_BASE_NS);
    window_note_greeting(&window, WINDOW_GREETING_NS + 9 * NS_PER_MS);
    window_note_greeting(&window, WINDOW_GREETING_NS + 10 * NS_PER_MS);
    assert_int_equal(window_base_ns(&window), WINDOW_BASE_NS + 9 * NS_PER_MS);
    window_note_answer(&window, 3 * NS_PER_MS);
    assert_int_equal(window_base_ns(&window), 3 * NS_PER_MS);
    window_note_ping(&window, WINDOW_PING_NS + 5 * NS_PER_MS);
    assert_int_equal(window_base_ns(&window), WINDOW_BASE_NS + 5 * NS_PER_MS);
    window_note_ping(&window, NS_PER_S);
    assert_in_range(window_base_ns(&window), 5 * NS_PER_MS, WINDOW_QUEUE_MOST_NS);
    window_note_greeting(&window, 0);
    window_note_ping(&window, 0);
    assert_int_equal(window_base_ns(&window), WINDOW_BASE_NS);
}

static void a_full_thread_makes_no_long_queue(void **state)
{
    (void)state;
    struct send_window window = {0};
    starve(&window, 1000);
    assert_int_equal(window_size_ns(&window), WINDOW_BASE_NS + WINDOW_QUEUE_MOST_NS);
    window.is_sender_full = true;
    starve(&window, 20);
    assert_int_equal(window_size_ns(&window), WINDOW_BASE_NS + WINDOW_QUEUE_FULL_NS);
    window.is_sender_full = false;
    starve(&window, 1000);
    assert_int_equal(window_size_ns(&window), WINDOW_BASE_NS + WINDOW_QUEUE_MOST_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_far_it_is_is_guessed),
        cmocka_unit_test(a_full_thread_makes_no_long_queue),
        cmocka_unit_test(who_asks_for_what_is_dear_pays_for_it),
        cmocka_unit_test(what_is_very_dear_is_found_out_too),
        cmocka_unit_test(tenants_of_all_kinds_have_the_same_time),
        cmocka_unit_test(who_changes_what_it_asks_for_wins_little),
        cmocka_unit_test(a_lesson_that_is_not_answered_ends),
        cmocka_unit_test(the_queue_is_as_long_as_keeps_redis_busy),
        cmocka_unit_test(redis_is_busy_though_it_is_far),
        cmocka_unit_test(redis_is_busy_where_processors_are_wanted),
        cmocka_unit_test(what_is_not_counted_tells_nothing),
        cmocka_unit_test(dear_ones_are_found_out_all_the_same),
        cmocka_unit_test(what_nobody_looked_for_tells_nothing),
        cmocka_unit_test(the_queue_becomes_short_again),
        cmocka_unit_test(the_queue_is_shorter_beside_who_sends_little),
        cmocka_unit_test(costs_that_change_make_no_long_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
