#include "tests/sim/server.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "tests/sim/aborts.h"
#include "tests/sim/masters.h"
#include "tests/sim/deployment.h"
#include "tests/sim/kernel.h"
#include "tests/sim/moves.h"
#include "tests/sim/proof_laws.h"
#include "tests/sim/run.h"
#include "tests/sim/sentinel_model.h"
#include "tests/sim/trace.h"
#include "tests/sim/under_way.h"

#define FEED_MAX 65536 /* bytes of one connection in one step */

struct visitor {
    struct party party;
    struct server *server;
    struct conn *conn;
    struct redis_conn *redis;
    struct list all;
    uint64_t said; /* bytes sent to weir */
    struct under_way under_way;
};

struct server {
    struct party party;
    struct redis *redis;
    struct list visitors;
    unsigned n_visitors;
    bool is_up, is_cut;
};

static struct server all[MASTERS_MAX];

static struct servers {
    unsigned n;
    struct server *lead;
    struct server *keeper; /* the server with the keys */
    unsigned turn;
    uint64_t command_ns;
    int64_t offset_us;
    struct redis_conn *beside; /* the administrator's connection; NULL: none yet */
    bool is_greeting;          /* the reply to its AUTH is to come */
    void (*on_told)(struct slice answer);
    void (*on_left)(void);
    struct answer_at answering;
    /* the connection of the current command; NULL: none, or not of interest */
    struct visitor *asking;
    struct random chance;
} servers;

enum { STREAM_SERVER = 3 };

static uint64_t redis_now_us(void)
{
    return (uint64_t)((int64_t)(SIM_EPOCH_US + (world.now_ns - SIM_START_NS) / 1000) +
                      servers.offset_us);
}

/* ---- connections ---- */

static void leave(struct visitor *visitor, bool with_reset)
{
    if (visitor->redis != NULL && !visitor->conn->weir_has_closed)
        proof_laws_note_closed(visitor->conn, redis_conn_user(visitor->redis));
    if (visitor->redis != NULL)
        redis_disconnect(visitor->redis);
    conn_close(visitor->conn, with_reset);
    world_leave(&visitor->party);
    list_take(&visitor->all);
    visitor->server->n_visitors--;
    free(visitor);
}

/* False: the connection is closed. */
static bool flush(struct visitor *visitor)
{
    struct slice out = redis_output(visitor->redis);
    while (out.len > 0) {
        size_t n = conn_send(visitor->conn, out.at, out.len);
        if (n == 0)
            return true;
        trace_note(TRACE_REDIS, visitor->conn->number, out.at, n);
        redis_taken(visitor->redis, n);
        visitor->said += n;
        out = redis_output(visitor->redis);
    }
    if (!redis_wants_close(visitor->redis))
        return true;
    leave(visitor, false);
    return false;
}

static void visit(struct party *party)
{
    struct visitor *visitor = container_of(party, struct visitor, party);
    if (visitor->server->is_cut)
        return;
    redis_clock(visitor->server->redis, redis_now_us());
    if (!flush(visitor))
        return;
    struct slice here = conn_here(visitor->conn);
    size_t n = here.len < FEED_MAX ? here.len : FEED_MAX;
    if (n > 0) {
        redis_feed(visitor->redis, here.at, n);
        conn_take(visitor->conn, n);
        world_wake(&visitor->server->party);
    }
    if (n < here.len)
        world_wake(party);
    else if (conn_is_over(visitor->conn))
        leave(visitor, false);
}

struct answer_at server_answering(void)
{
    return servers.answering;
}

/* NULL: closed. */
static const struct conn *lane_numbered(unsigned number)
{
    for (unsigned i = 0; i < servers.n; i++)
        for (struct list *at = all[i].visitors.next; at != &all[i].visitors; at = at->next) {
            const struct conn *conn = container_of(at, struct visitor, all)->conn;
            if (conn->number == number)
                return conn;
        }
    return NULL;
}

bool server_is_read(const struct answer_at *answer)
{
    const struct conn *conn = lane_numbered(answer->conn);
    return conn == NULL || conn->read_by_weir > answer->from;
}

bool server_is_read_whole(const struct answer_at *answer, uint64_t n)
{
    const struct conn *conn = lane_numbered(answer->conn);
    return conn != NULL && conn->read_by_weir >= answer->from + n;
}

/* No connection may have more calls in flight here than its limit admits. */
static void on_request(void *owner, const struct slice *argv, size_t argc)
{
    struct visitor *visitor = owner;
    if (visitor == NULL)
        return; /* the administrator's */
    if (proof_laws_are_broken(visitor->conn, redis_conn_user(visitor->redis), argv, argc)) {
        run_blame("proof", "a client whose password is gone");
        run_fail(visitor->conn->number,
                 "it carries a request of a client whose password was taken from its user");
    }
    uint64_t answer = visitor->said + redis_output(visitor->redis).len;
    deployment_hear((unsigned)(visitor->server - all), argv, argc);
    masters_hear((unsigned)(visitor->server - all), visitor->redis, argv, argc);
    servers.answering = (struct answer_at){visitor->conn->number, answer};
    if (run.plan.has_aborts) {
        servers.asking = visitor;
        aborts_carried_out(argv, argc);
    }
    if (run.plan.inflight == 0)
        return;
    unsigned n =
        under_way_begin(&visitor->under_way, argv, argc, answer, visitor->conn->read_by_weir);
    if (n <= run.plan.inflight)
        return;
    run_blame("inflight", "more calls under way than may be");
    run_fail(visitor->conn->number, "%u calls of one connection are under way", n);
}

/* The server that a connection dials. A single server is at all addresses. */
static struct server *dialled(const struct conn *conn)
{
    const struct sockaddr_in *in = (const void *)&conn->peer;
    if (run.plan.masters > 0)
        return &all[masters_dialled(in)];
    return servers.n == 1 ? &all[0]
                          : &all[(ntohl(in->sin_addr.s_addr) - SERVER_HOST(0)) % servers.n];
}

static bool is_silent(const struct conn *conn)
{
    const struct sockaddr_in *in = (const void *)&conn->peer;
    return ntohs(in->sin_port) == SERVER_PORT && dialled(conn)->is_cut;
}

static bool on_dialled(struct conn *conn)
{
    char peer[32];
    bool is_taken;
    if (run.plan.has_sentinels && sentinel_model_dialled(conn, &is_taken))
        return is_taken;
    struct server *server = dialled(conn);
    if (!server->is_up || (run.plan.masters == 0 && !moves_answers(&conn->peer)))
        return false;
    struct visitor *visitor = mem_zalloc(1, sizeof *visitor);
    visitor->party = (struct party){.turn = visit, .kind = "lane", .index = conn->number};
    visitor->conn = conn;
    snprintf(peer, sizeof peer, "127.0.0.1:%u", 10000 + conn->number % 50000);
    visitor->server = server;
    visitor->redis = redis_connect(server->redis, visitor, peer);
    list_push(&server->visitors, &visitor->all);
    server->n_visitors++;
    conn->host = &visitor->party;
    conn->owner = visitor;
    /* a Redis that sleeps refuses no connection before it wakes */
    if (redis_wants_close(visitor->redis))
        visitor->party.asleep_ns = server->party.asleep_ns;
    world_wake(&visitor->party);
    return true;
}

/* ---- the administrator ---- */

static void leave_beside(void)
{
    if (servers.beside != NULL)
        redis_disconnect(servers.beside);
    servers.beside = NULL;
}

void server_hear(void (*on_told)(struct slice answer), void (*on_left)(void))
{
    servers.on_told = on_told;
    servers.on_left = on_left;
}

void server_tell(const char *line)
{
    static const char login[] = "AUTH " SERVER_ADMIN " " SERVER_ADMIN "\n";
    if (servers.beside == NULL) {
        servers.beside = redis_connect(servers.lead->redis, NULL, "127.0.0.1:9");
        servers.is_greeting = true;
        redis_feed(servers.beside, login, sizeof login - 1);
    }
    trace_note(TRACE_FAULT, 0, line, strlen(line));
    redis_feed(servers.beside, line, strlen(line));
    redis_feed(servers.beside, "\n", 1);
    world_wake(&servers.lead->party);
}

static void hear_beside(void)
{
    struct slice out = redis_output(servers.beside);
    const char *end;
    while ((end = memchr(out.at, '\n', out.len)) != NULL) {
        struct slice answer = slice_of(out.at, (size_t)(end - out.at) + 1);
        if (!servers.is_greeting)
            servers.on_told(answer);
        servers.is_greeting = false;
        redis_taken(servers.beside, answer.len);
        out = redis_output(servers.beside);
    }
    if (redis_wants_close(servers.beside)) {
        leave_beside();
        servers.on_left();
    }
}

uint64_t server_picked_id(uint64_t pick)
{
    struct list *at = servers.lead->visitors.next;
    for (uint64_t i = servers.lead->n_visitors > 0 ? pick % servers.lead->n_visitors : 0; i > 0;
         i--)
        at = at->next;
    return at != &servers.lead->visitors
               ? redis_conn_id(container_of(at, struct visitor, all)->redis)
               : 0;
}

/* ---- steps ---- */

/* Moves the shared keys to this server. */
static void take_keys(struct server *server)
{
    if (servers.keeper != server && run.plan.masters == 0)
        redis_swap_keys(servers.keeper->redis, server->redis);
    servers.keeper = server;
}

static bool step(struct server *server)
{
    servers.asking = NULL;
    bool has_more = redis_step(server->redis);
    const struct visitor *visitor = servers.asking;
    if (visitor != NULL)
        aborts_answered(visitor->said + redis_output(visitor->redis).len - servers.answering.from);
    return has_more;
}

static void work(struct party *party)
{
    struct server *server = container_of(party, struct server, party);
    struct redis_conn *touched;
    take_keys(server);
    redis_clock(server->redis, redis_now_us());
    unsigned n = 1 + (unsigned)random_below(&servers.chance, servers.turn);
    bool has_more = true;
    for (unsigned i = 0; i < n && has_more; i++) {
        has_more = step(server);
        if (servers.command_ns > 0 && has_more) {
            world.now_ns += random_below(&servers.chance, servers.command_ns + 1);
            redis_clock(server->redis, redis_now_us());
        }
    }
    while ((touched = redis_touched(server->redis)) != NULL) {
        if (touched == servers.beside)
            hear_beside();
        else if (!server->is_cut)
            (void)flush(redis_owner(touched));
    }
    uint64_t next_us = redis_next_us(server->redis);
    if (has_more)
        world_wake(party);
    else if (next_us != REDIS_NEVER)
        world_wake_at(party,
                      (uint64_t)((int64_t)(next_us - SIM_EPOCH_US) - servers.offset_us) * 1000 +
                          SIM_START_NS);
}

static void start_one(struct server *server, unsigned which, struct redis_config config)
{
    *server = (struct server){.is_up = true};
    server->party = (struct party){.turn = work, .kind = "redis", .index = which};
    config.seed += which;
    server->redis = redis_new(&config);
    list_init(&server->visitors);
    world_wake(&server->party);
}

void server_start(const struct redis_config *config, unsigned turn, uint64_t command_ns)
{
    servers = (struct servers){
        .turn = turn, .command_ns = command_ns, .lead = &all[0], .keeper = &all[0]};
    servers.n = run.plan.masters > 0   ? run.plan.masters
                : run.plan.servers > 0 ? run.plan.servers
                                       : 1;
    random_init(&servers.chance, config->seed, STREAM_SERVER);
    struct redis_config own = *config;
    own.on_request = on_request;
    for (unsigned i = 0; i < servers.n; i++)
        start_one(&all[i], i, own);
    proof_laws_start();
    kernel.on_dialled = on_dialled;
    kernel.is_silent = is_silent;
}

static void drive_out(struct server *server, bool with_reset)
{
    if (server == servers.lead)
        leave_beside();
    while (!list_is_empty(&server->visitors))
        leave(container_of(server->visitors.next, struct visitor, all), with_reset);
}

static void fall(struct server *server, bool with_reset)
{
    server->is_up = false;
    drive_out(server, with_reset);
}

void server_leave_all(bool (*is_one)(const struct conn *conn, uint64_t arg), uint64_t arg,
                      bool with_reset)
{
    struct list *next;
    for (struct list *at = servers.lead->visitors.next; at != &servers.lead->visitors; at = next) {
        struct visitor *visitor = container_of(at, struct visitor, all);
        next = at->next;
        if (is_one(visitor->conn, arg))
            leave(visitor, with_reset);
    }
}

void server_stop(void)
{
    for (unsigned i = 0; i < servers.n; i++) {
        fall(&all[i], true);
        world_leave(&all[i].party);
        redis_free(all[i].redis);
    }
}

void server_fall(bool with_reset)
{
    fall(servers.lead, with_reset);
}

void server_rise(bool keeps_data, const struct redis_config *config)
{
    redis_restart_as(servers.lead->redis, keeps_data, config);
    servers.lead->is_up = true;
    world_wake(&servers.lead->party);
}

bool server_is_up(void)
{
    return servers.lead->is_up;
}

void server_sleep(uint64_t ns)
{
    world_sleep(&servers.lead->party, ns);
}

void server_slow(uint64_t command_ns)
{
    servers.command_ns = command_ns;
}

void server_step_clock(int64_t us)
{
    servers.offset_us += us;
    for (unsigned i = 0; i < servers.n; i++) {
        redis_clock(all[i].redis, redis_now_us());
        world_wake(&all[i].party);
    }
}

struct redis *server_redis_of(unsigned which)
{
    return all[which].redis;
}

void server_lead(unsigned which)
{
    leave_beside();
    servers.lead = &all[which];
}

void server_fall_one(unsigned which, bool with_reset)
{
    fall(&all[which], with_reset);
}

void server_rise_one(unsigned which)
{
    struct redis_config own = run.plan.redis;
    own.on_request = on_request;
    redis_restart_as(all[which].redis, true, &own);
    all[which].is_up = true;
    world_wake(&all[which].party);
}

bool server_is_up_one(unsigned which)
{
    return all[which].is_up;
}

void server_sleep_one(unsigned which, uint64_t ns)
{
    world_sleep(&all[which].party, ns);
}

void server_cut(unsigned which, bool is_cut)
{
    struct server *server = &all[which];
    server->is_cut = is_cut;
    for (struct list *at = server->visitors.next; at != &server->visitors; at = at->next)
        world_wake(&container_of(at, struct visitor, all)->party);
}

/* NULL: no connection. */
static struct visitor *picked(uint64_t pick)
{
    struct list *at = servers.lead->visitors.next;
    for (uint64_t i = servers.lead->n_visitors > 0 ? pick % servers.lead->n_visitors : 0; i > 0;
         i--)
        at = at->next;
    return at != &servers.lead->visitors ? container_of(at, struct visitor, all) : NULL;
}

/* Bytes that no server sends and no parser accepts. */
#define BYTES(text)                                                                                \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }
static const struct slice rubbish[] = {
    BYTES("?\r\n"),      BYTES(":x\r\n"),
    BYTES("*-7\r\n"),    BYTES("$99999999999999999999\r\n"),
    BYTES("#maybe\r\n"), BYTES("%-1\r\n"),
    BYTES("\0\0\0"),     BYTES("*1\r\n$3\r\nabcd\r\n"),
    BYTES("_x\r\n"),     BYTES("$1\r\n\r\n\r\n"),
    BYTES("garbage"),    BYTES("(12\rx"),
};
#define N_RUBBISH (sizeof rubbish / sizeof rubbish[0])

void server_garble(uint64_t pick)
{
    struct visitor *visitor = picked(pick);
    const struct slice *bytes = &rubbish[pick / 64 % N_RUBBISH];
    if (visitor == NULL || redis_output(visitor->redis).len > 0)
        return; /* in the middle of a reply the bytes would be a part of it */
    if (pipe_space(&visitor->conn->to_weir) < bytes->len)
        return; /* a part of the bytes may be the start of a valid reply */
    conn_send(visitor->conn, bytes->at, bytes->len);
    trace_note(TRACE_REDIS, visitor->conn->number, bytes->at, bytes->len);
}

struct conn *server_picked(uint64_t pick)
{
    struct visitor *visitor = picked(pick);
    return visitor != NULL ? visitor->conn : NULL;
}

void server_leave(struct conn *conn, bool with_reset)
{
    leave(conn->owner, with_reset);
}

struct redis *server_redis(void)
{
    return servers.lead->redis;
}
