#include "tests/sim/counters.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/deployment.h"
#include "tests/sim/kernel.h"
#include "tests/sim/lag.h"
#include "tests/sim/reply.h"
#include "tests/sim/run.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define PORT 6380
#define NET 0x0a000400U /* 10.0.4.0 */
#define ASKED_MAX 24
#define BURST_MAX 8
#define ACT_NS (120 * MS) /* longest time between two bursts */
#define AGAIN_NS (20 * MS)
#define LINE_ROOM 96

enum { STREAM_COUNTERS = 15 };

enum kind { KIND_AUTH, KIND_ADD, KIND_GET, KIND_ECHO, KIND_MGET };

/* A request without a reply yet. */
struct asked {
    enum kind kind;
    uint64_t said_ns;
    int64_t most;    /* highest value that the client's key may show */
    uint64_t serial; /* of an ECHO */
};

static struct counter {
    struct party party;
    struct random chance;
    struct conn *conn;
    uint64_t acts_ns;
    unsigned life, key;
    int64_t least, most; /* range of values that the client's key may show */
    uint64_t serial;
    struct asked asked[ASKED_MAX];
    unsigned n_asked;
} all[COUNTERS];

__attribute__((noreturn)) static void complain(const struct counter *counter, const char *why)
{
    run_blame("counter", why);
    run_fail(counter->conn->number, "counter %u: %s (its key shows %" PRId64 " to %" PRId64 ")",
             counter->party.index, why, counter->least, counter->most);
}

/* ---- requests ---- */

static void say(struct counter *counter, enum kind kind)
{
    char text[LINE_ROOM];
    unsigned i = counter->party.index, n = 0;
    struct asked *asked = &counter->asked[counter->n_asked];
    uint64_t serial = ++counter->serial;
    if (kind == KIND_AUTH)
        n = (unsigned)snprintf(text, sizeof text, "AUTH u%u pw%u.0\r\n", i, i);
    else if (kind == KIND_ADD)
        n = (unsigned)snprintf(text, sizeof text, "INCR count:%u:%u\r\n", i, counter->key);
    else if (kind == KIND_GET)
        n = (unsigned)snprintf(text, sizeof text, "GET count:%u:%u\r\n", i, counter->key);
    else if (kind == KIND_MGET)
        n = (unsigned)snprintf(text, sizeof text, "MGET count:%u:%u\r\n", i, counter->key);
    else
        n = (unsigned)snprintf(text, sizeof text, "ECHO %u:%" PRIu64 "\r\n", i, serial);
    if (conn_send(counter->conn, text, n) != n)
        return; /* impossible: the window is larger than all requests together */
    trace_note(TRACE_SEND, counter->conn->number, text, n);
    counter->most += kind == KIND_ADD;
    *asked = (struct asked){kind, world.now_ns, counter->most, serial};
    counter->n_asked++;
}

static void say_some(struct counter *counter)
{
    uint64_t n = 1 + random_below(&counter->chance, BURST_MAX);
    for (; n > 0 && counter->n_asked < ASKED_MAX; n--) {
        uint64_t pick = random_below(&counter->chance, 10);
        say(counter, pick < 5 ? KIND_ADD : pick < 7 ? KIND_GET : pick < 8 ? KIND_MGET : KIND_ECHO);
    }
}

static void come(struct counter *counter)
{
    uint16_t port = (uint16_t)(30000 + counter->life % 20000);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(port)};
    from.sin_addr.s_addr = htonl(NET + counter->party.index + 1);
    counter->conn = conn_dial(PORT, NULL, (const struct sockaddr *)&from, sizeof from,
                              &counter->party, counter);
    counter->life++;
    lag_forget(counter->party.index);
    if (counter->life % 2 == 1 || counter->least == counter->most) {
        counter->key = counter->life;
        counter->least = counter->most = 0;
    }
    /* with limits other clients of the user would share what is counted */
    bool is_alone = !run.plan.has_limits;
    if (counter->conn != NULL && counter->party.index > 0 && is_alone)
        say(counter, KIND_AUTH);
}

/* ---- replies ---- */

static bool parse(const struct reply *reply, int64_t *number)
{
    char text[24];
    if (reply->type == ':')
        *number = reply->number;
    if (reply->type == ':')
        return true;
    *number = 0; /* no key */
    if (reply->is_nil || reply->type == '_')
        return true;
    if (reply->type != '$' || reply->text.len >= sizeof text)
        return false;
    memcpy(text, reply->text.at, reply->text.len);
    text[reply->text.len] = '\0';
    return sscanf(text, "%" SCNd64, number) == 1;
}

static void judge_error(struct counter *counter, const struct asked *asked,
                        const struct reply *reply)
{
    bool was_run = reply_begins(reply, '-', SLICE("UPSTREAM timeout"));
    if (run.plan.is_pure && run.phase != RUN_STOPS && !deployment_may_lose(asked->said_ns))
        complain(counter, "it hears an error, and no server has gone without a word");
    if (asked->kind != KIND_ADD || was_run)
        return;
    counter->most--;
    for (unsigned i = 1; i < counter->n_asked; i++)
        counter->asked[i].most--;
}

static void judge_number(struct counter *counter, const struct asked *asked, int64_t number)
{
    bool is_add = asked->kind == KIND_ADD;
    if (number > asked->most)
        complain(counter, is_add ? "a request was carried out twice"
                                 : "it reads what comes later, or comes twice");
    if (number < counter->least + is_add)
        complain(counter, "what was answered is lost");
    counter->least = number;
}

static void judge(struct counter *counter, const struct reply *reply)
{
    const struct asked *asked = &counter->asked[0];
    struct reply inner = *reply;
    char text[LINE_ROOM];
    int64_t number;
    if (reply->type == '-') {
        judge_error(counter, asked, reply);
        return;
    }
    if (asked->kind == KIND_AUTH) {
        if (!reply_is_ok(reply))
            complain(counter, "what answers its login is no answer to that");
        return;
    }
    if (asked->kind == KIND_ECHO) {
        int n = snprintf(text, sizeof text, "%u:%" PRIu64, counter->party.index, asked->serial);
        if (!reply_is(reply, '$', slice_of(text, (size_t)n)))
            complain(counter, "it hears another reply than its own");
        return;
    }
    bool is_right = asked->kind == KIND_ADD ? reply->type == ':'
                                            : reply->type == (asked->kind == KIND_GET ? '$' : '*');
    if (asked->kind == KIND_MGET)
        is_right = is_right && reply_at(reply, 0, &inner);
    if (!is_right || !parse(&inner, &number))
        complain(counter, "it hears what is no reply to what it has asked");
    judge_number(counter, asked, number);
}

static void hear(struct counter *counter)
{
    struct reply reply;
    size_t n;
    while ((n = reply_read(conn_here(counter->conn), &reply)) != REPLY_MORE) {
        if (n == REPLY_BAD || counter->n_asked == 0)
            complain(counter, "it hears what it has not asked for");
        trace_note(TRACE_REPLY, counter->conn->number, conn_here(counter->conn).at, n);
        judge(counter, &reply);
        conn_take(counter->conn, n);
        memmove(counter->asked, counter->asked + 1, --counter->n_asked * sizeof counter->asked[0]);
    }
}

static void end(struct counter *counter)
{
    bool is_idle = counter->n_asked == 0;
    bool may = run.phase == RUN_STOPS || !run.plan.is_pure ||
               (!is_idle && deployment_may_lose(counter->asked[0].said_ns));
    if (!may)
        complain(counter, is_idle ? "it is closed, and waits for nothing"
                                  : "it is closed, and no server has gone without a word");
    trace_note(TRACE_CLOSE, counter->conn->number, NULL, 0);
    conn_close(counter->conn, false);
    counter->conn = NULL;
    counter->n_asked = 0;
}

/* ---- start and end ---- */

static void plan_next(struct counter *counter, uint64_t least_ns)
{
    bool is_soon = random_hits(&counter->chance, 500000);
    uint64_t wait_ns =
        is_soon ? random_scale(&counter->chance, ACT_NS) : random_below(&counter->chance, ACT_NS);
    counter->acts_ns = world.now_ns + least_ns + wait_ns;
    world_wake_at(&counter->party, counter->acts_ns);
}

static void take_turn(struct party *party)
{
    struct counter *counter = container_of(party, struct counter, party);
    if (counter->conn != NULL) {
        hear(counter);
        if (conn_has_ended(counter->conn)) {
            end(counter);
            plan_next(counter, AGAIN_NS);
        }
    }
    if (run.phase != RUN_ACTS || world.now_ns < counter->acts_ns)
        return;
    if (counter->conn == NULL)
        come(counter);
    if (counter->conn != NULL)
        say_some(counter);
    plan_next(counter, 0);
}

void counters_start(void)
{
    for (unsigned i = 0; i < COUNTERS && run.plan.servers > 0; i++) {
        all[i] = (struct counter){.party = {.turn = take_turn, .kind = "counter", .index = i}};
        random_init(&all[i].chance, run.plan.seed, STREAM_COUNTERS + 1000 * (i + 1));
        plan_next(&all[i], 0);
    }
}

bool counters_are_waiting(void)
{
    bool is_waiting = false;
    for (unsigned i = 0; i < COUNTERS; i++)
        is_waiting |= all[i].conn != NULL && all[i].n_asked > 0;
    return is_waiting;
}

void counters_leave(void)
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        if (all[i].conn != NULL)
            conn_close(all[i].conn, false);
        all[i].conn = NULL;
        all[i].n_asked = 0;
    }
}

void counters_stop(void)
{
    counters_leave();
    for (unsigned i = 0; i < COUNTERS && run.plan.servers > 0; i++)
        world_leave(&all[i].party);
}
