/*
 * Tests of the fair queue: shares by weight, by subject and not by lane user, a short queue, and no
 * starvation.
 */
#include "fair_queue_kit.h"

static double share(struct tenant *a, struct tenant *b, unsigned turns)
{
    struct tenant *both[] = {a, b};
    for (unsigned i = 0; i < turns / 4; i++)
        turn(both, 2);
    a->answered = b->answered = 0;
    for (unsigned i = 0; i < turns; i++)
        turn(both, 2);
    assert_true(a->answered + b->answered > 0);
    return (double)(a->answered * a->cost_ns) / (double)(b->answered * b->cost_ns + 1);
}

static void assert_about(double value, double wanted, double off)
{
    if (value < wanted / off || value > wanted * off)
        fail_msg("%.3f, not about %.3f", value, wanted);
}

static void check_share(unsigned lane_users_a, uint32_t weight_a, uint64_t cost_a,
                        unsigned lane_users_b, uint64_t cost_b, double wanted, double off,
                        unsigned turns)
{
    open_server();
    struct tenant *a = open_tenant(1, lane_users_a, cost_a);
    struct tenant *b = open_tenant(2, lane_users_b, cost_b);
    a->weight = weight_a;
    double got = share(a, b, turns);
    close_tenant(a);
    close_tenant(b);
    close_server();
    assert_about(got, wanted, off);
}

static void subjects_have_equal_shares(void **state)
{
    (void)state;
    check_share(1, 100, NS_PER_US, 1, NS_PER_US, 1, 1.1, 60000);
}

static void a_thousand_lane_users_are_one_subject(void **state)
{
    (void)state;
    check_share(LANE_USERS, 100, NS_PER_US, 1, NS_PER_US, 1, 1.1, 60000);
}

static void weights_decide(void **state)
{
    (void)state;
    check_share(3, 300, NS_PER_US, 3, NS_PER_US, 3, 1.1, 60000);
}

static void shares_are_of_redis_time(void **state)
{
    (void)state;
    check_share(2, 100, 300 * NS_PER_US, 2, NS_PER_US, 1, 1.1, 200000);
}

static void weights_hold_where_one_request_is_more_than_the_window(void **state)
{
    (void)state;
    check_share(2, 300, NS_PER_MS, 2, NS_PER_MS, 3, 1.1, 200000);
}

static void the_queue_stays_short(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 10, NS_PER_US), open_tenant(2, 10, NS_PER_US)};
    for (unsigned i = 0; i < 10000; i++)
        turn(tenants, 2);
    server->most_ns = 0;
    uint64_t before = tenants[0]->answered + tenants[1]->answered;
    uint64_t began_ns = server->now_ns;
    for (unsigned i = 0; i < 10000; i++)
        turn(tenants, 2);
    double busy = (double)(tenants[0]->answered + tenants[1]->answered - before) * NS_PER_US /
                  (double)(server->now_ns - began_ns);
    assert_in_range(server->most_ns, WINDOW_SLACK_NS / 2, 4 * WINDOW_SLACK_NS);
    assert_true(busy > 0.8);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

static void who_asks_little_does_not_wait(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 10, NS_PER_US), open_tenant(2, 10, NS_PER_US),
                                open_tenant(3, 1, NS_PER_US)};
    tenants[2]->is_flood = false;
    for (unsigned i = 0; i < 20000; i++) {
        turn(tenants, 3);
        if (i % 50 != 0)
            continue;
        ask(tenants[2], 0, 1);
        assert_false(tenants[2]->lane_users[0].waits_for_share);
    }
    assert_true(tenants[2]->answered > 390);
    for (unsigned i = 0; i < 3; i++)
        close_tenant(tenants[i]);
    close_server();
}

static void low_priority_goes_when_nobody_else_waits(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 2, NS_PER_US), open_tenant(2, 2, NS_PER_US)};
    tenants[1]->is_low = true;
    for (unsigned i = 0; i < 1000; i++)
        turn(tenants, 2);
    uint64_t before = tenants[1]->answered;
    uint64_t others = tenants[0]->answered;
    for (unsigned i = 0; i < 10000; i++)
        turn(tenants, 2);
    assert_true(tenants[1]->answered - before < (tenants[0]->answered - others) / 20);
    tenants[0]->is_flood = false;
    before = tenants[1]->answered;
    for (unsigned i = 0; i < 10000; i++)
        turn(tenants, 2);
    assert_true(tenants[1]->answered - before > 70000);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

/*
 * A server that never replies: the sent requests are bounded, and other tenants get through now and
 * then.
 */
static void what_is_never_answered_is_not_counted_on(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, 1, NS_PER_S), open_tenant(2, 1, NS_PER_US)};
    tenants[0]->known_ns = NS_PER_US;
    ask(tenants[0], 0, 1000);
    ask(tenants[1], 0, 1000);
    fair_iteration(&server->fair, false);
    assert_true(tenants[0]->lane_users[0].waits_for_share &&
                tenants[1]->lane_users[0].waits_for_share);
    assert_in_range(server->fair.work_ns, 1, 2 * window_size_ns(&server->fair.window));
    n_woken = 0;
    for (unsigned i = 0; i < 100 && n_woken == 0; i++) {
        server->now_ns += FAIR_PATIENCE_NS;
        fair_tick(&server->fair, server->now_ns);
        fair_iteration(&server->fair, false);
    }
    assert_true(n_woken > 0);
    close_tenant(tenants[0]);
    close_tenant(tenants[1]);
    close_server();
}

static void one_of_many_lane_users_has_no_more_than_two_windows(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenant = open_tenant(1, 2, NS_PER_US);
    struct sender *sender = tenant->senders[0];
    uint32_t room = (uint32_t)((uint64_t)fair_room_alone(sender) / NS_PER_US);
    assert_in_range(room, 1, 1000);
    fair_sent(sender, room, room * NS_PER_US, server->now_ns);
    assert_int_equal(fair_room_alone(sender), 0);
    fair_wait_for_own(sender);
    tenant->lane_users[0].waits_for_share = true;
    fair_answered(sender, room / 4, server->now_ns, server->now_ns + 50 * NS_PER_US);
    assert_true(tenant->lane_users[0].waits_for_share);
    fair_answered(sender, room / 2, server->now_ns, server->now_ns + 50 * NS_PER_US);
    assert_false(tenant->lane_users[0].waits_for_share);
    assert_true(fair_room_alone(tenant->senders[1]) > 0);
    close_tenant(tenant);
    close_server();
}

/* A sender may switch between waiting for its own requests and waiting for its share. */
static void who_waits_may_wait_for_something_else(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenant = open_tenant(1, 2, NS_PER_US);
    fair_sent(tenant->senders[0], 1000, NS_PER_MS, server->now_ns);
    fair_wait_for_own(tenant->senders[0]);
    fair_wait(tenant->senders[0]);
    assert_int_equal(server->fair.n_crowding, 0);
    fair_wait_for_own(tenant->senders[0]);
    assert_int_equal(server->fair.n_crowding, 1);
    assert_int_equal(server->fair.weights, 0);
    close_tenant(tenant);
    close_server();
}

static void who_leaves_gives_back_what_it_had(void **state)
{
    (void)state;
    open_server();
    struct tenant *tenants[] = {open_tenant(1, LANE_USERS, NS_PER_US),
                                open_tenant(2, 1, NS_PER_US)};
    for (unsigned i = 0; i < 1000; i++) {
        turn(tenants, 2);
        struct sender **sender = &tenants[0]->senders[i];
        fair_leave(&server->fair, *sender);
        *sender = NULL;
        tenants[0]->lane_users[i].waits_for_share = true; /* sends no more */
    }
    assert_int_equal(server->fair.n_senders, 1);
    close_tenant(tenants[1]);
    assert_int_equal(server->fair.work_ns, 0);
    close_tenant(tenants[0]);
    close_server();
}

/* True if `sender` may send `ns` after its last answer, while `other` waits. */
static bool may_send_after(struct sender *sender, struct sender *other, uint64_t ns)
{
    fair_wait(other);
    bool may = fair_room(sender, server->now_ns + ns) > 0;
    fair_stop_waiting(other);
    return may;
}

/*
 * While Redis executes a transaction its flow does not count as silent, though weir does not wait
 * for the reply.
 */
static void a_transaction_is_paid_for_after_it(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 1, NS_PER_US);
    struct tenant *b = open_tenant(2, 1, NS_PER_US);
    struct sender *sender = a->senders[0];
    fair_sent(sender, 1, NS_PER_US, server->now_ns);
    fair_ends_transaction(sender, false);
    for (unsigned i = 0; i < 1000; i++)
        fair_queued(sender, 200 * NS_PER_US, server->now_ns);
    assert_int_equal(server->fair.work_ns, NS_PER_US);
    fair_answered(sender, 1001, server->now_ns, server->now_ns);
    fair_sent(sender, 1, NS_PER_US, server->now_ns);
    fair_ends_transaction(sender, true);
    assert_int_equal(server->fair.work_ns, 200 * NS_PER_MS + NS_PER_US);
    server->now_ns += NS_PER_S;
    fair_tick(&server->fair, server->now_ns);
    assert_int_equal(server->fair.work_ns, 0);
    fair_answered(sender, 1, server->now_ns - NS_PER_S, server->now_ns);
    assert_false(may_send_after(sender, b->senders[0], 190 * NS_PER_MS));
    assert_true(may_send_after(sender, b->senders[0], 210 * NS_PER_MS));
    close_tenant(a);
    close_tenant(b);
    close_server();
}

/* A grant leaves no rest that would allow another request. */
static void a_grant_of_one_request_allows_one(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 1, NS_PER_MS);
    struct tenant *b = open_tenant(2, 1, NS_PER_MS);
    struct tenant *tenants[] = {a, b};
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t before_ns = server->queued_ns;
        turn(tenants, 2);
        assert_true(server->queued_ns <= before_ns + 2 * NS_PER_MS);
        assert_true(a->senders[0]->requests <= 1 && b->senders[0]->requests <= 1);
    }
    close_tenant(a);
    close_tenant(b);
    close_server();
}

/* Each of several transactions is charged. */
static void a_flow_owes_a_second_for_each_sender(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 3, NS_PER_US);
    for (unsigned i = 0; i < 3; i++) {
        fair_queued(a->senders[i], 900 * NS_PER_MS, server->now_ns);
        fair_ends_transaction(a->senders[i], false);
    }
    assert_in_range(-a->senders[0]->flow->credit_ns, 2600 * NS_PER_MS, 2700 * NS_PER_MS);
    fair_queued(a->senders[0], 100 * NS_PER_S, server->now_ns);
    fair_ends_transaction(a->senders[0], false);
    assert_int_equal(-a->senders[0]->flow->credit_ns, 3 * NS_PER_S);
    close_tenant(a);
    close_server();
}

/* A client that is overcharged all the time counts as silent again within two seconds. */
static void charges_last_no_longer_than_debts(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 1, NS_PER_US);
    fair_sent(a->senders[0], 1, NS_PER_US, server->now_ns);
    fair_answered(a->senders[0], 1, server->now_ns, server->now_ns);
    for (unsigned i = 0; i < 1000; i++)
        fair_charge(a->senders[0], 100 * NS_PER_MS);
    assert_in_range(a->senders[0]->flow->moved_ns - server->now_ns, 900 * NS_PER_MS, 2 * NS_PER_S);
    close_tenant(a);
    close_server();
}

/* Work of other flows pays a debt. Time alone does not. */
static void debts_are_paid_by_the_work_of_others(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 1, 4 * NS_PER_MS);
    struct tenant *b = open_tenant(2, 1, NS_PER_US);
    fair_room(a->senders[0], server->now_ns);
    fair_sent(a->senders[0], 1, 4 * NS_PER_MS, server->now_ns);
    fair_settle(a->senders[0]);
    fair_answered(a->senders[0], 1, server->now_ns, server->now_ns);
    fair_sent(b->senders[0], 4000, 4 * NS_PER_MS, server->now_ns);
    fair_settle(b->senders[0]);
    fair_wait(a->senders[0]);
    n_woken = 0;
    for (unsigned i = 0; i < 40; i++) {
        server->now_ns += NS_PER_MS / 4;
        fair_iteration(&server->fair, false);
        assert_int_equal(n_woken, 0);
        if (fair_is_unsettled(&server->fair))
            fail();
    }
    for (unsigned i = 0; i < 3; i++) {
        fair_answered(b->senders[0], 1000, server->now_ns, server->now_ns);
        fair_iteration(&server->fair, false);
        assert_false(fair_is_unsettled(&server->fair));
        assert_int_equal(n_woken, 0);
    }
    fair_answered(b->senders[0], 1000, server->now_ns, server->now_ns);
    fair_iteration(&server->fair, false);
    fair_is_unsettled(&server->fair);
    fair_iteration(&server->fair, false);
    assert_int_equal(n_woken, 1);
    fair_settle(a->senders[0]);
    close_tenant(a);
    close_tenant(b);
    close_server();
}

/*
 * A new connection for each request: the subject keeps its debt until a silence as long as the
 * debt.
 */
static void who_comes_again_owes_what_it_owed(void **state)
{
    (void)state;
    open_server();
    struct tenant *a = open_tenant(1, 1, NS_PER_US);
    struct tenant *b = open_tenant(2, 1, NS_PER_US);
    fair_sent(a->senders[0], 1, 10 * NS_PER_MS, server->now_ns);
    /* Redis works on the request for 10 ms, which do not count as silence */
    fair_leave(&server->fair, a->senders[0]);
    a->senders[0] =
        fair_enter(&server->fair, &a->lane_users[0].lane_user, a->subject, server->now_ns);
    assert_false(may_send_after(a->senders[0], b->senders[0], 19 * NS_PER_MS));
    fair_leave(&server->fair, a->senders[0]);
    a->senders[0] = fair_enter(&server->fair, &a->lane_users[0].lane_user, a->subject,
                               server->now_ns + 25 * NS_PER_MS);
    assert_int_equal(a->senders[0]->flow->credit_ns, FAIR_QUANTUM_NS);
    close_tenant(a);
    close_tenant(b);
    close_server();
}

/* Two workers: one subject on both, the other on one. Each subject has half. */
static void workers_share_by_what_waits_on_them(void **state)
{
    (void)state;
    struct contention contention = {0};
    struct fair_queue queues[2];
    struct test_lane_user lane_users[3] = {0};
    struct subject *subjects[] = {make_subject(1), make_subject(2)};
    for (int i = 0; i < 2; i++)
        fair_queue_init(&queues[i], &contention, &pool, wake);
    struct sender *senders[] = {
        fair_enter(&queues[0], &lane_users[0].lane_user, subjects[0], NS_PER_S),
        fair_enter(&queues[1], &lane_users[1].lane_user, subjects[0], NS_PER_S),
        fair_enter(&queues[1], &lane_users[2].lane_user, subjects[1], NS_PER_S),
    };
    for (int i = 0; i < 3; i++) {
        fair_set(senders[i], 100, false);
        fair_wait(senders[i]);
    }
    assert_int_equal(atomic_load(&subjects[0]->queues), 2);
    assert_int_equal(atomic_load(&subjects[1]->queues), 1);
    assert_int_equal(atomic_load(&contention.weights), queues[0].weights + queues[1].weights);
    for (int i = 0; i < 3; i++)
        fair_leave(&queues[i > 0], senders[i]);
    assert_int_equal(atomic_load(&contention.weights), 0);
    for (int i = 0; i < 2; i++) {
        fair_queue_fini(&queues[i]);
        free(subjects[i]);
    }
}

static void several_are_noticed_and_forgotten(void **state)
{
    (void)state;
    struct mixture mixture = {0};
    int a, b;
    uint64_t now_ns = NS_PER_S;
    for (int i = 0; i < 10; i++)
        assert_false(mixture_note(&mixture, &a, now_ns + (uint64_t)i));
    assert_true(mixture_note(&mixture, &b, now_ns));
    assert_true(mixture_note(&mixture, &a, now_ns));
    assert_true(mixture_is(&mixture, now_ns + CONTENTION_NS - 1));
    assert_true(mixture_note(&mixture, &a, now_ns + CONTENTION_NS * 3 / 4));
    now_ns += 3 * CONTENTION_NS;
    assert_false(mixture_is(&mixture, now_ns));
    assert_false(mixture_note(&mixture, &a, now_ns));
    assert_false(mixture_note(&mixture, &a, now_ns));
    assert_true(mixture_note(&mixture, &b, now_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subjects_have_equal_shares),
        cmocka_unit_test(a_thousand_lane_users_are_one_subject),
        cmocka_unit_test(weights_decide),
        cmocka_unit_test(shares_are_of_redis_time),
        cmocka_unit_test(weights_hold_where_one_request_is_more_than_the_window),
        cmocka_unit_test(the_queue_stays_short),
        cmocka_unit_test(who_asks_little_does_not_wait),
        cmocka_unit_test(low_priority_goes_when_nobody_else_waits),
        cmocka_unit_test(what_is_never_answered_is_not_counted_on),
        cmocka_unit_test(one_of_many_lane_users_has_no_more_than_two_windows),
        cmocka_unit_test(who_waits_may_wait_for_something_else),
        cmocka_unit_test(who_leaves_gives_back_what_it_had),
        cmocka_unit_test(a_grant_of_one_request_allows_one),
        cmocka_unit_test(a_flow_owes_a_second_for_each_sender),
        cmocka_unit_test(charges_last_no_longer_than_debts),
        cmocka_unit_test(debts_are_paid_by_the_work_of_others),
        cmocka_unit_test(a_transaction_is_paid_for_after_it),
        cmocka_unit_test(who_comes_again_owes_what_it_owed),
        cmocka_unit_test(workers_share_by_what_waits_on_them),
        cmocka_unit_test(several_are_noticed_and_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
