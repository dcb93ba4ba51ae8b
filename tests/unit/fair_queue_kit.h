/*
 * For tests of the fair queue: a model of Redis as a queue of requests, and tenants that send as
 * the fair queue allows.
 */
#ifndef WEIR_TESTS_FAIR_QUEUE_KIT_H
#define WEIR_TESTS_FAIR_QUEUE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "upstream/fair/fair_queue.h"
#include "upstream/lane/lane_user.h"

#define LANE_USERS 1000

static struct pool pool;

/* Redis works at requests one by one, and answers them at the end of the iteration. */
struct sent {
    struct tenant *tenant;
    unsigned lane_user;
    uint32_t n;
    uint64_t at_ns;
};

struct test_lane_user {
    struct lane_user lane_user;
    bool waits_for_share; /* set by ask, cleared by wake */
};

struct tenant {
    struct subject *subject;
    struct test_lane_user lane_users[LANE_USERS];
    struct sender *senders[LANE_USERS];
    unsigned n_lane_users;
    uint32_t weight;
    bool is_low;
    bool is_flood;     /* each lane user always has more to send; else one request now and then */
    uint64_t cost_ns;  /* cost of a request */
    uint64_t known_ns; /* cost of a request as weir knows it */
    uint64_t answered;
    uint64_t longest_ns; /* the longest wait of a request to be sent */
};

/* A processor that is away for a part of each period. */
struct absence {
    uint64_t period_ns, away_ns; /* 0: never away */
};

struct server {
    struct contention contention;
    struct fair_queue fair;
    struct sent queue[100000];
    size_t head, tail;
    uint64_t now_ns, free_ns;
    uint64_t way_ns;        /* round trip without the work in Redis */
    uint64_t most_ns;       /* most work that was in the queue */
    bool is_batching;       /* Redis answers all received requests at once */
    struct absence absence; /* absence of Redis' processor */
    struct absence weirs;   /* absence of weir's processor */
    uint64_t worked_ns;
    uint64_t queued_ns;
};

static struct server *server;
static unsigned n_woken;

static void wake(struct lane_user *lane_user)
{
    container_of(lane_user, struct test_lane_user, lane_user)->waits_for_share = false;
    n_woken++;
}

static struct subject *make_subject(uint64_t hash)
{
    struct subject *subject = calloc(1, sizeof *subject);
    subject->hash = hash;
    return subject;
}

/* Opens a server at a round trip that weir knows. */
static void open_server_at(uint64_t way_ns)
{
    server = calloc(1, sizeof *server);
    server->now_ns = server->free_ns = NS_PER_S;
    server->way_ns = way_ns;
    fair_queue_init(&server->fair, &server->contention, &pool, wake);
    atomic_init(&server->contention.trip_ns, way_ns);
}

static void open_server(void)
{
    open_server_at(30 * NS_PER_US);
}

static struct tenant *open_tenant(uint64_t number, unsigned n_lane_users, uint64_t cost_ns)
{
    struct tenant *tenant = calloc(1, sizeof *tenant);
    tenant->subject = make_subject(number);
    tenant->n_lane_users = n_lane_users;
    tenant->weight = FAIR_WEIGHT;
    tenant->cost_ns = tenant->known_ns = cost_ns;
    tenant->is_flood = true;
    for (unsigned i = 0; i < n_lane_users; i++) {
        tenant->senders[i] = fair_enter(&server->fair, &tenant->lane_users[i].lane_user,
                                        tenant->subject, server->now_ns);
        assert_non_null(tenant->senders[i]);
    }
    return tenant;
}

static void close_tenant(struct tenant *tenant)
{
    for (unsigned i = 0; i < tenant->n_lane_users; i++)
        if (tenant->senders[i] != NULL)
            fair_leave(&server->fair, tenant->senders[i]);
    assert_int_equal(atomic_load(&tenant->subject->queues), 0);
    free(tenant->subject);
    free(tenant);
}

static void close_server(void)
{
    assert_int_equal(atomic_load(&server->contention.weights), 0);
    fair_queue_fini(&server->fair);
    assert_int_equal(atomic_load(&pool.held), 0);
    free(server);
}

static void send_on(struct tenant *tenant, unsigned i, uint32_t n)
{
    fair_sent(tenant->senders[i], n, n * tenant->known_ns, server->now_ns);
    server->queue[server->tail++ % 100000] = (struct sent){tenant, i, n, server->now_ns};
    server->queued_ns += n * tenant->cost_ns;
    if (server->queued_ns > server->most_ns)
        server->most_ns = server->queued_ns;
}

/* Sends like a client does when it has requests, or when its link is woken. */
static void ask(struct tenant *tenant, unsigned i, uint32_t wanted)
{
    struct sender *sender = tenant->senders[i];
    uint32_t sent = 0;
    if (tenant->lane_users[i].waits_for_share)
        return;
    fair_set(sender, tenant->weight, tenant->is_low);
    while (sent < wanted) {
        int64_t room_ns = fair_room(sender, server->now_ns);
        if (room_ns == 0) {
            tenant->lane_users[i].waits_for_share = true;
            fair_wait(sender);
            break;
        }
        uint64_t fit = ((uint64_t)room_ns - 1) / tenant->known_ns + 1;
        uint32_t n = fit < wanted - sent ? (uint32_t)fit : wanted - sent;
        send_on(tenant, i, n);
        sent += n;
    }
    fair_settle(sender);
}

static bool is_away(const struct absence *absence, uint64_t now_ns)
{
    return absence->away_ns > 0 && now_ns % absence->period_ns < absence->away_ns;
}

/* The end of work that begins at at_ns. */
static uint64_t end_of(const struct absence *absence, uint64_t at_ns, uint64_t work_ns)
{
    if (absence->away_ns == 0)
        return at_ns + work_ns;
    for (;;) {
        uint64_t in_period = at_ns % absence->period_ns;
        if (in_period < absence->away_ns)
            at_ns += absence->away_ns - in_period;
        uint64_t left = absence->period_ns - at_ns % absence->period_ns;
        if (work_ns <= left)
            return at_ns + work_ns;
        work_ns -= left;
        at_ns += left;
    }
}

#define READ_MOST 500 /* requests that Redis reads at once */

/* Number of entries at the head of the queue that are answered together. */
static size_t batch_at(size_t head, uint64_t begins_ns)
{
    size_t n = 1;
    uint32_t requests = server->queue[head % 100000].n;
    while (server->is_batching && head + n != server->tail) {
        const struct sent *sent = &server->queue[(head + n) % 100000];
        requests += sent->n;
        if (sent->at_ns + server->way_ns > begins_ns || requests > READ_MOST)
            break;
        n++;
    }
    return n;
}

static void answer_one(void)
{
    const struct sent *sent = &server->queue[server->head++ % 100000];
    uint64_t work_ns = sent->n * sent->tenant->cost_ns;
    server->queued_ns -= work_ns;
    server->worked_ns += work_ns;
    sent->tenant->answered += sent->n;
    if (sent->tenant->senders[sent->lane_user] != NULL)
        fair_answered(sent->tenant->senders[sent->lane_user], sent->n, sent->at_ns, server->now_ns);
}

/* Answers all requests that Redis has finished by now. */
static void answer(void)
{
    while (server->head != server->tail) {
        uint64_t there_ns = server->queue[server->head % 100000].at_ns + server->way_ns;
        uint64_t begins_ns =
            end_of(&server->absence, there_ns > server->free_ns ? there_ns : server->free_ns, 0);
        size_t n = batch_at(server->head, begins_ns);
        uint64_t work_ns = 0;
        for (size_t i = 0; i < n; i++) {
            const struct sent *sent = &server->queue[(server->head + i) % 100000];
            work_ns += sent->n * sent->tenant->cost_ns;
        }
        uint64_t ends_ns = end_of(&server->absence, begins_ns, work_ns);
        if (ends_ns > server->now_ns)
            return;
        server->free_ns = ends_ns;
        for (; n > 0; n--)
            answer_one();
    }
}

static void turn(struct tenant **tenants, unsigned n)
{
    server->now_ns += 10 * NS_PER_US;
    if (is_away(&server->weirs, server->now_ns))
        return;
    answer();
    for (unsigned t = 0; t < n; t++)
        for (unsigned i = 0; i < tenants[t]->n_lane_users && tenants[t]->is_flood; i++)
            ask(tenants[t], i, 500);
    do {
        fair_iteration(&server->fair, false);
        for (unsigned t = 0; t < n; t++)
            for (unsigned i = 0; i < tenants[t]->n_lane_users; i++)
                if (tenants[t]->is_flood || tenants[t]->senders[i]->granted_ns > 0)
                    ask(tenants[t], i, tenants[t]->is_flood ? 500 : 0);
        server->now_ns += NS_PER_US;
    } while (fair_is_unsettled(&server->fair));
}

#endif
