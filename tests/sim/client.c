#include "tests/sim/client.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/admin.h"
#include "tests/sim/listen_address.h"
#include "tests/sim/limits.h"
#include "tests/sim/ops.h"
#include "tests/sim/ops_place.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"

#define RETRY_NS 50000000
#define FOLLOW_NS 1000000
#define HANDSHAKE_NS UINT64_C(10000000000) /* default of handshake-timeout */
#define HANDSHAKE_SHORT_NS UINT64_C(300000000)
#define HANDSHAKE_SLACK_NS UINT64_C(2000000) /* loops count in ms */
#define AWAY_NS 20000000                     /* time until a retry when Redis is away */
#define STRANGER_BULK_MAX 16384
#define PAUSE "pause" /* in a scenario: the time between two acts of a client */
#define HANG_UP "hang_up"
/* in a scenario: the delay after which the client follows another client's script */
#define FOLLOW "follow"

enum { STREAM_CLIENTS = 1000 };

static struct client *clients;
static unsigned n_clients, n_asked, n_looked; /* see clients_ask_one */

/* ---- connection ---- */

/* Draws the time until the client's next act, or takes it from the scenario. */
static void rest(struct client *client, uint64_t most_ns)
{
    const struct line *line = scenario_is_replayed() ? scenario_peek(client->number) : NULL;
    uint64_t ns = 0;
    for (; line != NULL && strcmp(line->name, FOLLOW) == 0; line = scenario_peek(client->number))
        scenario_take(client->number); /* the leader was removed by shrinking */
    if (line != NULL && strcmp(line->name, PAUSE) == 0) {
        ns = line->numbers[0];
        scenario_take(client->number);
    } else if (!scenario_is_replayed()) {
        ns = random_below(&client->chance, most_ns + 1);
        scenario_note(client->number, PAUSE, ns, 0, 0);
    }
    bool is_over = scenario_is_replayed() && line == NULL;
    client->acts_ns = is_over ? UINT64_MAX : world.now_ns + ns;
    if (client->acts_ns < client->quiet_ns)
        client->acts_ns = client->quiet_ns;
}

void client_be_stranger(struct client *client)
{
    client->session.is_in = admin_lets_in();
    client->session.is_named = false;
    client->session.came_ns = world.now_ns;
}

bool client_is_doubtful(const struct client *client)
{
    /* weir opens a new connection to find out whether Redis requires a password */
    bool is_weir_outside = run.plan.may_change_password && run.plan.redis.maxclients > 0;
    return !client->session.is_named &&
           (is_weir_outside || admin_is_changing(client->session.came_ns));
}

static void begin_life(struct client *client)
{
    client->life++;
    client->in.len = client->out.len = 0;
    client->reader.at = client->reader.depth = 0;
    client->out_head = 0;
    client->sent = 0;
    client->n_expected = 0;
    client->session = (struct session){.losses = run.losses};
    for (size_t i = 0; i < USERS * DATABASES; i++)
        client->session.cells[i / DATABASES][i % DATABASES].losses = run.losses;
    client->intent = (struct intent){.is_in = admin_lets_in()};
    client_be_stranger(client);
    client->reads_ns = 0;
    client->follows = client->is_lost = client->has_shut = client->sees_all =
        client->may_be_closed = false;
}

static void dial(struct client *client)
{
    begin_life(client);
    client->conn = listen_address_dial(client);
    if (client->conn != NULL)
        client->conn->counts_reads = true;
    client->acts_ns = world.now_ns + (client->conn == NULL ? RETRY_NS : 0);
}

/* Subjects are users, and for clients without a login their addresses. */
static unsigned subject_of(const struct client *client)
{
    return client->session.user > 0 ? client->session.user - 1 : USERS + client->address;
}

static const struct expected *expected_at(const struct client *client, unsigned i)
{
    return &client->expected[(client->first_expected + i) % EXPECTED_MAX];
}

/*
 * The subjects that the client may have for weir, as far as outstanding replies leave that open:
 * one bit each.
 */
static unsigned subjects_of(const struct client *client)
{
    bool is_outcome_unknown = client->is_lost;
    for (unsigned i = 0; i < client->n_expected && !is_outcome_unknown; i++)
        is_outcome_unknown = (expected_at(client, i)->act.op->flags & OP_ENTERS) != 0;
    return is_outcome_unknown ? ((1U << (USERS - 1)) - 1) | 1U << (USERS + client->address)
                              : 1U << subject_of(client);
}

/* An op without classes is not judged by limits, so it may be charged to any class. */
static unsigned may_charge(const struct op *op)
{
    return op->classes != 0 ? op->classes : UINT_MAX;
}

/* Requests without a reply may be carried out until weir has closed its side, too. */
static void leave_behind(struct client *client)
{
    if (!run.plan.has_limits || (client->n_expected == 0 && !client->is_lost))
        return;
    client->conn->left = limits_leave(subjects_of(client));
    for (unsigned i = 0; i < client->n_expected; i++)
        limits_leaves(client->conn->left, may_charge(expected_at(client, i)->act.op));
}

void client_hang_up(struct client *client, bool with_reset)
{
    leave_behind(client);
    place_gone(client);
    trace_note(with_reset ? TRACE_RESET : TRACE_CLOSE, client->conn->number, NULL, 0);
    conn_close(client->conn, with_reset);
    client->conn = NULL;
    client->n_expected = 0;
    rest(client, RETRY_NS);
}

void client_shut(struct client *client)
{
    if (client->has_shut)
        return;
    if (client->out_head < client->out.len) {
        client->is_lost = true;
        client->n_expected = 0;
    }
    client->intent.is_leaving = client->has_shut = true;
    trace_note(TRACE_SHUT, client->conn->number, NULL, 0);
    conn_shut(client->conn);
}

static void flush(struct client *client)
{
    size_t left = client->out.len - client->out_head;
    size_t n = left > 0 ? conn_send(client->conn, client->out.at + client->out_head, left) : 0;
    if (n > 0)
        trace_note(TRACE_SEND, client->conn->number, client->out.at + client->out_head, n);
    client->out_head += n;
    if (client->out_head < client->out.len)
        return;
    client->sent += client->out.len;
    client->out_head = client->out.len = 0;
    if (client->intent.is_off && client->n_expected <= 1)
        client_hang_up(client, true); /* after a half-close weir would first answer the request */
    else if (client->intent.is_leaving)
        client_shut(client);
}

/* ---- judging ---- */

/*
 * True if the client has sent CLIENT REPLY OFF and ON and it is not known which of the two commands
 * has reached Redis.
 */
static bool may_be_silent(const struct client *client)
{
    return client->session.has_been_silent && (!run_is_whole() || run.plan.has_slow);
}

static void complain(struct client *client, const struct expected *asked, const struct reply *reply,
                     const char *why)
{
    if (may_be_silent(client)) {
        client->is_lost = true; /* the client may have got a reply that it did not want */
        client->n_expected = 0;
        return;
    }
    run_blame(asked != NULL ? asked->act.op->name : "nothing", why);
    int shown = reply->whole.len < 200 ? (int)reply->whole.len : 200;
    run_fail(client->conn->number, "client %u (connection %u): %s(%u, %u, %u): %s: %.*s",
             client->number, client->conn->number, asked != NULL ? asked->act.op->name : "nothing",
             asked != NULL ? asked->act.a : 0, asked != NULL ? asked->act.b : 0,
             asked != NULL ? asked->act.c : 0, why, shown, reply->whole.at);
}

static bool is_message(const struct client *client, const struct reply *reply)
{
    if (reply->type == '>')
        return true;
    return !client->session.is_resp3 && is_subscriber(&client->session) && reply->type == '*' &&
           channel_is_message(reply);
}

static void queue(struct client *client, const struct expected *asked)
{
    struct session *session = &client->session;
    if (session->n_queued < QUEUED_MAX)
        session->queued[session->n_queued++] = *asked;
}

static const struct client *judging;

/*
 * Counts commands of other clients only: commands behind the command being judged were decided
 * later.
 */
static unsigned count_under_way(unsigned subject, unsigned classes)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_clients; i++) {
        const struct client *client = &clients[i];
        if (client->conn == NULL || client == judging || (subjects_of(client) >> subject & 1) == 0)
            continue;
        if (client->is_lost)
            return LIMITS_UNKNOWN;
        for (unsigned k = 0; k < client->n_expected; k++)
            n += (may_charge(expected_at(client, k)->act.op) & classes) != 0;
    }
    return n;
}

/* Judges a refusal by a drawn limit. The law of that limit is independent of other limits. */
static const char *judge_refused(struct client *client, const struct expected *asked,
                                 const struct reply *reply)
{
    const struct refused refused = {subject_of(client), asked->act.op->classes, reply->text,
                                    asked->act.read_ns};
    judging = client;
    const char *why = limits_refused(&refused, count_under_way);
    return why == limits_strange && run.plan.may_refuse ? NULL : why;
}

/*
 * True if inflight refused a request that it must admit. A connection has at most as many calls in
 * flight as outstanding replies. In a calm run the connection is the only one that counts.
 */
static bool is_wronged(const struct client *client, const struct expected *asked,
                       const struct reply *reply)
{
    static const char limit[] = "limit=default/inflight", most[] = "inflight = 3 per connection";
    if (memmem(reply->text.at, reply->text.len, limit, sizeof limit - 1) == NULL ||
        client->session.has_been_silent)
        return false;
    return run.is_calm || (asked->pending < 3 && regime_says_since(most, asked->act.read_ns));
}

static const char *judge_limits(struct client *client, const struct expected *asked,
                                const struct reply *reply)
{
    const struct op *op = asked->act.op;
    uint64_t from_ns = asked->act.read_ns;
    if (run.plan.has_free && client->address == FREE_ADDRESS)
        return reply_begins(reply, '-', SLICE("THROTTLED ")) ? "no limit binds its address" : NULL;
    if (run.plan.identifies || run.plan.operators != OPERATORS_NONE)
        return NULL; /* clients themselves forgive debts and change limits */
    if (memory_was_short())
        return NULL; /* a new client may share the newcomers' subject */
    if (!reply_begins(reply, '-', SLICE("THROTTLED ")))
        limits_charged(subject_of(client), may_charge(op));
    if (op->classes == 0 || admin_excuses(&asked->act, reply) ||
        reply_begins(reply, '-', SLICE("UPSTREAM ")) ||
        reply_begins(reply, '-', SLICE("NOAUTH ")) ||
        reply_begins(reply, '-', SLICE("ERR Can't execute '")) ||
        reply_begins(reply, '-', SLICE("ERR Protocol error: ")) ||
        reply_begins(reply, '-', SLICE("ERR LIMIT is not allowed in transactions")))
        return NULL;
    if (reply_begins(reply, '-', SLICE("THROTTLED ")) && is_wronged(client, asked, reply))
        return "refused, and less is under way than may be";
    if (reply_begins(reply, '-', SLICE("THROTTLED ")))
        return judge_refused(client, asked, reply);
    return limits_passed(subject_of(client), op->classes, from_ns, world.now_ns);
}

/*
 * An operator's handshake that gets no connection to Redis, though Redis is up, is answered when
 * handshake-timeout is over.
 */
static bool may_be_left_out(const struct act *act)
{
    bool is_short = regime_may_say("handshake-timeout = 300ms");
    uint64_t least_ns = is_short ? HANDSHAKE_SHORT_NS : HANDSHAKE_NS;
    return regime_may_say("admin = yes") &&
           world.now_ns + HANDSHAKE_SLACK_NS >= act->read_ns + least_ns;
}

static bool is_select(const struct op *op)
{
    return op->judge == judge_select || op->judge == judge_select_none;
}

static const char *judge(struct client *client, const struct expected *asked,
                         const struct reply *reply)
{
    struct session *session = &client->session;
    const struct op *op = asked->act.op;
    bool is_queued = session->in_multi && (op->flags & OP_MULTI) == 0;
    const char *why = run.plan.has_limits ? judge_limits(client, asked, reply) : NULL;
    if (why != NULL)
        return why;
    session->may_have_queued_select |= is_queued && is_select(op);
    /* weir knows that a password is required */
    bool is_known = session->came_ns > SIM_START_NS + ADMIN_PASSWORD_NS;
    bool is_strange = is_known && !session->is_in && !client_is_doubtful(client) &&
                      (op->flags & (OP_ENTERS | OP_LEAVES)) == 0;
    /* after a MULTI that was refused */
    bool is_discarded = session->in_multi && (op->flags & OP_ENDS) != 0;
    if (is_strange && !is_discarded && reply->type != '-')
        return "served, and it has not logged in";
    bool is_login = strcmp(op->name, "auth") == 0 || strcmp(op->name, "enter") == 0;
    if (is_login && !session->in_multi && !memory_was_short() &&
        reply_begins(reply, '-', SLICE("UPSTREAM ")) && !may_be_left_out(&asked->act))
        return "a login hears that Redis is away";
    if (is_excused(client, &asked->act, reply)) {
        session->is_voided |= session->in_multi && (is_queued || (op->flags & OP_CONTROL) == 0);
        if ((op->flags & OP_ENDS) != 0 && reply_begins(reply, '-', SLICE("EXECABORT ")))
            transaction_end(session);
        client->is_lost |=
            (op->flags & OP_SILENT) != 0 || reply_begins(reply, '-', SLICE("ERR Protocol error: "));
        if (reply_begins(reply, '-', SLICE("UPSTREAM ")) &&
            client->acts_ns < world.now_ns + AWAY_NS)
            client->acts_ns = world.now_ns + AWAY_NS;
        bool is_weirs =
            reply_begins(reply, '-', SLICE("UPSTREAM ")) || admin_excuses(&asked->act, reply);
        /* weir does not know the client's user */
        client->may_be_closed |= is_weirs && (op->flags & OP_ENTERS) != 0;
        bool is_strangers =
            run.plan.may_change_password && reply_begins(reply, '-', SLICE("NOAUTH "));
        /* refused by Redis, or by weir, which voids the transaction */
        client->is_lost |= (op->flags & OP_BEGINS) != 0 && is_strangers;
        if ((op->flags & OP_BEGINS) != 0 && is_weirs)
            session->in_multi = session->is_voided = session->is_unbegun =
                true; /* the commands behind MULTI must not run one by one */
        return NULL;
    }
    if (!is_queued)
        return op->judge(client, &asked->act, reply);
    if (reply->type == '-') {
        session->is_voided = true;
        return (op->flags & OP_QUEUES) != 0 && !session->is_unbegun ? "an error instead of QUEUED"
                                                                    : NULL;
    }
    if (!reply_is(reply, '+', SLICE("QUEUED")))
        return "it is not QUEUED";
    session->has_queued_select |= is_select(op);
    queue(client, asked);
    return NULL;
}

static void take_reply(struct client *client, const struct reply *reply)
{
    const char *why;
    trace_note(TRACE_REPLY, client->conn->number, reply->whole.at, reply->whole.len);
    if (run.plan.may_close && reply_is(reply, '-', SLICE("ERR max number of clients reached"))) {
        client->is_lost = true;
        client->n_expected = 0;
    }
    if (memory_was_short() && client->n_expected == 0 &&
        reply_is(reply, '-', SLICE("ERR out of memory")))
        client->is_lost = true; /* the error came too late, and answers no request */
    if (client->is_lost)
        return;
    struct expected *asked =
        client->n_expected > 0 ? &client->expected[client->first_expected] : NULL;
    bool is_confirmation = asked != NULL && (asked->act.op->flags & OP_SUBSCRIBED) != 0;
    if (is_message(client, reply)) {
        struct reply word;
        if (!is_confirmation || !reply_at(reply, 0, &word) || channel_is_message(reply) ||
            reply_is(&word, '$', SLICE("invalidate"))) {
            why = channel_judge_message(client, reply);
            if (why != NULL)
                complain(client, NULL, reply, why);
            return;
        }
    }
    if (asked == NULL) {
        complain(client, NULL, reply, "nobody has asked");
        return;
    }
    client->judged++;
    asked->act.read_ns = conn_read_at(client->conn, asked->upto);
    why = judge(client, asked, reply);
    if (why != NULL)
        complain(client, asked, reply, why);
    if (client->is_lost)
        client->n_expected = 0;
    if (client->is_lost)
        return;
    client->first_expected = (client->first_expected + 1) % EXPECTED_MAX;
    client->n_expected--;
    run.replies++;
}

static void take_replies(struct client *client)
{
    struct slice here = conn_here(client->conn);
    if (here.len == 0 || world.now_ns < client->reads_ns)
        return;
    trace_note(TRACE_TAKE, client->conn->number, NULL, 0);
    if (!bytes_add(&client->in, here, SIZE_MAX))
        abort();
    conn_take(client->conn, here.len);
    struct slice rest = bytes_slice(&client->in);
    struct reply reply;
    size_t size;
    if (client->is_lost) {
        if (!client->sees_all && has_strange_mark(client, rest))
            run_fail(client->conn->number, "client %u (connection %u) sees what is another's: %.*s",
                     client->number, client->conn->number, (int)(rest.len < 500 ? rest.len : 500),
                     rest.at);
        client->in.len = 0;
        return;
    }
    while ((size = reply_go_on(&client->reader, rest, &reply)) != REPLY_MORE && size != REPLY_BAD) {
        take_reply(client, &reply);
        rest = slice_of(rest.at + size, rest.len - size);
    }
    if (size == REPLY_BAD && !client->is_lost) {
        reply = (struct reply){.whole = rest};
        complain(client, NULL, &reply, "no reply");
    }
    memmove(client->in.at, rest.at, rest.len);
    client->in.len = rest.len;
}

/* ---- steps ---- */

static bool has_room(const struct client *client)
{
    return client->conn != NULL && client->n_expected < EXPECTED_MAX - 64 &&
           !client->intent.is_leaving && !client->intent.is_off;
}

static void act_once(struct client *client, const struct op *op, uint64_t a, uint64_t b, uint64_t c)
{
    struct act one = {op, (uint32_t)a, (uint32_t)b, (uint32_t)c, 0, false};
    scenario_note(client->number, op->name, one.a, one.b, one.c);
    op->say(client, &one);
}

/*
 * The next line of the scenario, if it is an act that the client can do now. The first act in a
 * step, and hang_up, need no room.
 */
static const struct line *next_act(const struct client *client, bool is_first)
{
    const struct line *line = client->conn != NULL ? scenario_peek(client->number) : NULL;
    if (line == NULL || strcmp(line->name, PAUSE) == 0 || strcmp(line->name, FOLLOW) == 0)
        return NULL;
    return is_first || has_room(client) || strcmp(line->name, HANG_UP) == 0 ? line : NULL;
}

static void act_again(struct client *client)
{
    const struct line *line;
    for (bool is_first = true; (line = next_act(client, is_first)) != NULL; is_first = false) {
        const struct op *op = op_named(slice_str(line->name));
        scenario_take(client->number);
        if (op != NULL)
            act_once(client, op, line->numbers[0], line->numbers[1], line->numbers[2]);
    }
}

static bool can_ask(const struct client *client)
{
    const struct session *session = &client->session;
    bool is_silenced = is_subscriber(session) && !session->is_resp3;
    return client->conn != NULL && !client->is_lost && session->is_in && !session->in_multi &&
           !is_silenced && !client->intent.is_leaving;
}

static void act(struct client *client)
{
    if (client->is_in_crowd && !client->intent.in_multi &&
        (client->intent.subscribed == 0 || client->intent.is_resp3)) {
        client->is_in_crowd = false;
        act_once(client, op_named(SLICE("auth")), random_next(&client->chance), 1, 0);
        return;
    }
    if (client->follows && can_ask(client) && !client->intent.in_multi) {
        client->follows = false;
        act_once(client, op_named(SLICE("eval_get")), random_next(&client->chance), 0, 0);
        return;
    }
    if (place_is_due(client) && !client->is_lost && !client->intent.in_multi &&
        (client->intent.subscribed == 0 || client->intent.is_resp3))
        act_once(client, op_named(SLICE("place_round")), 0, 0, 0);
    unsigned n = 1 + (unsigned)random_below(&client->chance, run.plan.pipeline);
    if (client->is_lost && random_hits(&client->chance, 250000))
        act_once(client, op_named(SLICE(HANG_UP)), 0, 0, 0);
    bool was_lost = client->is_lost;
    for (unsigned i = 0; i < n && has_room(client) && client->is_lost == was_lost; i++) {
        const struct op *op = op_draw(client);
        uint64_t a = random_next(&client->chance), b = random_next(&client->chance),
                 c = random_next(&client->chance);
        act_once(client, op, a, b, c);
    }
}

/*
 * As in Redis a blocking command ends when its client half-closes: the element it would pop may be
 * lost with the client.
 */
static bool may_block(const struct client *client)
{
    for (unsigned i = 0; i < client->n_expected; i++)
        if ((client->expected[(client->first_expected + i) % EXPECTED_MAX].act.op->flags &
             OP_BLOCKS) != 0)
            return true;
    return false;
}

/* Redis and weir take no long value from a client without a login. */
static bool is_too_strange(const struct client *client)
{
    return !client->session.is_in && run.plan.value_max > STRANGER_BULK_MAX;
}

/*
 * True if a client may have queued a login in MULTI. EXEC may then close the client, which loses
 * the replies it has not read.
 */
static bool may_queue_login(const struct client *client)
{
    bool in_multi = client->session.in_multi;
    for (unsigned i = 0; i < client->n_expected; i++) {
        unsigned flags =
            client->expected[(client->first_expected + i) % EXPECTED_MAX].act.op->flags;
        if (in_multi && (flags & OP_ENTERS) != 0 && (flags & OP_QUEUES) != 0)
            return true;
        in_multi |= (flags & OP_BEGINS) != 0;
    }
    return false;
}

static void lose(struct client *client)
{
    bool is_stopped = run.phase == RUN_STOPS && run.plan.stops_at_once;
    bool is_cut = client->has_shut && !may_block(client) && client->n_expected > 0 && !is_stopped;
    bool is_unasked =
        !client->intent.is_leaving && run.phase != RUN_STOPS && !is_too_strange(client);
    bool may_close =
        client->is_lost || client->may_be_closed || !run.is_faultless || may_queue_login(client);
    bool is_wrong = (is_cut || is_unasked) && !may_close && !memory_explains_end();
    if (is_wrong && is_cut)
        run_fail(client->conn->number,
                 "client %u (connection %u): closed before %u answers, half of it was open",
                 client->number, client->conn->number, client->n_expected);
    if (is_wrong)
        run_fail(client->conn->number, "client %u (connection %u): closed, and nothing was wrong",
                 client->number, client->conn->number);
    client_hang_up(client, false);
}

/* True if the client has fewer outstanding replies than its pipeline. Replies wake the client. */
static bool is_free(const struct client *client)
{
    return client->conn == NULL ||
           (client->n_expected < run.plan.pipeline && client->out.len == client->out_head &&
            !client->intent.is_leaving && !client->intent.is_off);
}

static void take_turn(struct party *party)
{
    struct client *client = container_of(party, struct client, party);
    bool is_due = world.now_ns >= client->acts_ns && run.phase == RUN_ACTS && is_free(client);
    if (client->conn == NULL && is_due)
        dial(client);
    if (client->conn != NULL)
        take_replies(client);
    if (client->conn != NULL && conn_is_over(client->conn) && world.now_ns >= client->reads_ns)
        lose(client);
    if (client->conn != NULL && is_due) {
        rest(client, run.plan.think_ns);
        if (scenario_is_replayed())
            act_again(client);
        else
            act(client);
    }
    if (client->conn != NULL)
        flush(client);
    uint64_t next_ns = client->reads_ns > world.now_ns ? client->reads_ns : UINT64_MAX;
    if (run.phase == RUN_ACTS && is_free(client) && client->acts_ns < next_ns)
        next_ns = client->acts_ns;
    if (next_ns != UINT64_MAX)
        world_wake_at(party, next_ns);
}

void clients_start(unsigned n)
{
    clients = mem_zalloc(n, sizeof *clients);
    n_clients = n;
    for (unsigned i = 0; i < n; i++) {
        struct client *client = &clients[i];
        client->party = (struct party){.turn = take_turn, .kind = "client", .index = i};
        client->number = i;
        random_init(&client->chance, run.plan.seed, STREAM_CLIENTS + i);
        rest(client, run.plan.think_ns);
        world_wake_at(&client->party, client->acts_ns);
    }
}

struct client *client_picked(uint64_t pick)
{
    for (unsigned i = 0; i < n_clients; i++) {
        struct client *client = &clients[(pick + i) % n_clients];
        if (client->conn != NULL)
            return client;
    }
    return NULL;
}

void clients_rest(uint64_t until_ns)
{
    for (unsigned i = 0; i < n_clients; i++)
        if (clients[i].acts_ns < until_ns)
            clients[i].acts_ns = until_ns;
}

void clients_crowd(uint64_t until_ns)
{
    for (unsigned i = 0; i < n_clients; i++) {
        struct client *client = &clients[i];
        client->quiet_ns = until_ns;
        client->is_in_crowd = true;
        if (client->acts_ns != UINT64_MAX)
            client->acts_ns = world.now_ns;
        world_wake(&client->party);
    }
}

/*
 * The time until a client follows. UINT64_MAX: the scenario was shrunk, or is older than the word,
 * and has no such line.
 */
static uint64_t follow_ns(struct client *client)
{
    const struct line *line = scenario_is_replayed() ? scenario_peek(client->number) : NULL;
    if (!scenario_is_replayed()) {
        uint64_t ns = FOLLOW_NS + random_below(&client->chance, 20 * FOLLOW_NS);
        scenario_note(client->number, FOLLOW, ns, 0, 0);
        return ns;
    }
    if (line == NULL || strcmp(line->name, FOLLOW) != 0)
        return UINT64_MAX;
    uint64_t ns = line->numbers[0];
    scenario_take(client->number);
    return ns;
}

void clients_follow(const struct client *leader)
{
    for (unsigned i = 0; i < n_clients; i++) {
        struct client *client = &clients[i];
        if (client == leader || !can_ask(client) || client->n_expected > 0)
            continue;
        uint64_t ns = follow_ns(client);
        if (ns == UINT64_MAX)
            continue;
        uint64_t at_ns = world.now_ns + ns;
        client->follows = true;
        client->acts_ns = at_ns > client->quiet_ns ? at_ns : client->quiet_ns;
        world_wake_at(&client->party, client->acts_ns);
    }
}

void clients_wake(void)
{
    for (unsigned i = 0; i < n_clients; i++)
        world_wake(&clients[i].party);
}

/* NULL: no client is left that can send a request. */
static struct client *next_to_ask(unsigned *n)
{
    while (*n < n_clients && !can_ask(&clients[*n]))
        ++*n;
    return *n < n_clients ? &clients[(*n)++] : NULL;
}

static bool ask_one(struct client *client, const char *name)
{
    struct act one = {.op = op_named(slice_str(name))};
    if (client == NULL)
        return false;
    one.op->say(client, &one);
    world_wake(&client->party);
    return true;
}

static bool ask_for_place(void)
{
    unsigned n = 0;
    struct client *client = next_to_ask(&n);
    if (client == NULL || !place_inherit(client))
        return false;
    world_wake(&client->party);
    return true;
}

/* Sends LIMIT STATUS first, while nothing has changed the figures in the reply. */
bool clients_ask_one(void)
{
    return ask_one(next_to_ask(&n_looked), "status") || ask_one(next_to_ask(&n_asked), "get") ||
           ask_for_place();
}

void clients_leave_unheard(void)
{
    for (unsigned i = 0; i < n_clients; i++)
        if (clients[i].conn != NULL && (clients[i].is_lost || clients[i].session.has_been_silent))
            client_hang_up(&clients[i], false);
}

/* True if the client may stay without a reply. */
static bool may_wait(const struct client *client)
{
    /* the connection waits in the backlog until other clients disconnect */
    bool is_outside = client->conn->fd < 0 && kernel.odds.fds < KERNEL_FDS_ENOUGH;
    return client->is_lost || is_outside || (client->session.has_been_silent && run.plan.has_slow);
}

const struct client *clients_waiting(void)
{
    for (unsigned i = 0; i < n_clients; i++)
        if (clients[i].conn != NULL && clients[i].n_expected > 0 && !may_wait(&clients[i]))
            return &clients[i];
    return NULL;
}

void clients_leave(void)
{
    for (unsigned i = 0; i < n_clients; i++)
        if (clients[i].conn != NULL)
            client_hang_up(&clients[i], false);
}

void clients_stop(void)
{
    clients_leave();
    for (unsigned i = 0; i < n_clients; i++) {
        bytes_fini(&clients[i].in);
        bytes_fini(&clients[i].out);
        world_leave(&clients[i].party);
    }
    free(clients);
    shared_fini();
}
