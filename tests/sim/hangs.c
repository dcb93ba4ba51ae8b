#include "tests/sim/hangs.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/faults.h"
#include "tests/sim/kernel.h"
#include "tests/sim/regime.h"
#include "tests/sim/reply.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define MS UINT64_C(1000000)
#define PORT 6380
#define ASKERS 0x0a000401U /* 10.0.4.1 */
#define TIMEOUT_NS (HANGS_TIMEOUT_MS * MS)
/* time beyond upstream-timeout within which the answer must come */
#define GRACE_NS (100 * MS)
#define ASKED_NS (20 * TIMEOUT_NS) /* how long clients send questions */
#define HANG_NS (24 * TIMEOUT_NS)  /* longer than ASKED_NS and the last answer */
#define PACE_NS (20 * MS)          /* time between an answer and the next question */
#define CLIENTS 4
#define TEXT_ROOM 512

/* One request, sent once for each letter of `wanted`, on one key. */
static const struct question {
    const char *before, *behind; /* the words before and behind the key */
    /* for each reply: 0, 1: that decision; e: the error; d: the decision of limit-when-down */
    const char *wanted;
    uint64_t wait_ms; /* granted by WAIT */
} questions[] = {
    {"LIMIT FUNNEL", " 5/s", "d", 0},
    {"LIMIT CHECK hang-own", "", "0001", 0},
    {"LIMIT CHECK hang-yes", "", "000", 0},
    {"LIMIT CHECK hang-no", "", "11", 0},
    {"LIMIT FUNNEL", " 5/s WAIT 100", "d", 100},
    {"LIMIT CHECK hang-own", " WAIT 100", "000", 100},
    {"LIMIT ACQUIRE", " 1 9000", "e", 0},
    {"LIMIT ACQUIRE", " 1 9000 WAIT 100", "e", 100},
};
#define N_QUESTIONS (sizeof questions / sizeof questions[0])

static struct asking {
    struct party party;
    /* rings for the next question, or, while connected, when the answer is overdue */
    struct bell bell;
    struct conn *conn;
    const struct question *question;
    const char *wanted; /* the replies that are still to come */
} all[CLIENTS];

static struct hangs {
    uint64_t asked;      /* number of questions in all hangs */
    uint64_t until_ns;   /* clients send questions until then */
    uint64_t not_run_ns; /* when Redis last said that it is no master, or loads; 0: never */
} hangs;

static void fail(const struct asking *one, const char *blame)
{
    run_blame("hang", blame);
    run_fail(one->conn->number, "connection %u: %s: %s", one->conn->number, one->question->before,
             blame);
}

/* ---- questions ---- */

/* For failover-wait after such a refusal weir waits for a master, though none can be reached. */
static uint64_t patience_from_ns(void)
{
    uint64_t wait_ns = 1000 * MS;
    if (hangs.not_run_ns == 0 || regime_says_since("failover-wait = 0", hangs.not_run_ns))
        wait_ns = 0;
    else if (regime_says_since("failover-wait = 200ms", hangs.not_run_ns))
        wait_ns = 200 * MS;
    return hangs.not_run_ns + wait_ns;
}

static size_t write_question(char *out, const struct question *question)
{
    size_t len = 0;
    for (size_t i = 0; i < strlen(question->wanted); i++)
        len += (size_t)snprintf(out + len, TEXT_ROOM - len, "%s hang:%llu%s\r\n", question->before,
                                (unsigned long long)hangs.asked, question->behind);
    return len;
}

static void ask(struct asking *one)
{
    char text[TEXT_ROOM];
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(40000 + hangs.asked % 20000))};
    from.sin_addr.s_addr = htonl(ASKERS);
    one->question = &questions[hangs.asked++ % N_QUESTIONS];
    one->wanted = one->question->wanted;
    one->conn =
        conn_dial(PORT, NULL, (const struct sockaddr *)&from, sizeof from, &one->party, one);
    if (one->conn == NULL)
        return;
    size_t taken = conn_send(one->conn, text, write_question(text, one->question));
    trace_note(TRACE_SEND, one->conn->number, text, taken);
    uint64_t sent_ns = one->conn->to_weir.last_ns, master_ns = patience_from_ns();
    uint64_t from_ns = sent_ns > master_ns ? sent_ns : master_ns;
    world_ring_at(&one->bell, from_ns + TIMEOUT_NS + one->question->wait_ms * MS + GRACE_NS);
}

static void leave(struct asking *one)
{
    world_silence(&one->bell);
    if (one->conn == NULL)
        return;
    trace_note(TRACE_CLOSE, one->conn->number, NULL, 0);
    conn_close(one->conn, false);
    one->conn = NULL;
}

static void on_bell(struct bell *bell)
{
    struct asking *one = container_of(bell, struct asking, bell);
    if (one->conn == NULL)
        ask(one);
    else
        fail(one, "not answered within upstream-timeout and 0.1 s");
}

/* ---- answers ---- */

static bool is_error(const struct reply *reply)
{
    return reply_begins(reply, '-', SLICE("UPSTREAM timeout")) ||
           reply_begins(reply, '-', SLICE("UPSTREAM unavailable"));
}

static bool is_decision(const struct reply *reply, int64_t limited)
{
    struct reply first;
    return reply->type == '*' && reply_at(reply, 0, &first) && reply_is_integer(&first, limited);
}

static bool is_right(const struct reply *reply, char wanted)
{
    if (wanted == 'e')
        return is_error(reply);
    if (wanted != 'd')
        return is_decision(reply, wanted - '0');
    return (is_error(reply) && !regime_says("limit-when-down = ")) ||
           (is_decision(reply, 0) && regime_may_say("limit-when-down = allow")) ||
           (is_decision(reply, 1) && regime_may_say("limit-when-down = deny"));
}

#define TURNED_AWAY "-ERR max number of clients reached\r\n"

/*
 * True if weir refuses the connection. The refusal is one write, which may be short, or lost
 * together with what weir has not read.
 */
static bool is_turned_away(const struct asking *one)
{
    const struct slice here = conn_here(one->conn), whole = SLICE(TURNED_AWAY);
    bool is_first = one->wanted == one->question->wanted;
    bool is_all = here.len == whole.len || conn_has_ended(one->conn);
    return regime_may_say("max-clients = ") && is_first && is_all && here.len <= whole.len &&
           memcmp(here.at, whole.at, here.len) == 0;
}

/* True if all replies have come. */
static bool take_replies(struct asking *one)
{
    struct reply reply;
    while (*one->wanted != '\0') {
        size_t n = reply_read(conn_here(one->conn), &reply);
        if (is_turned_away(one))
            return true;
        if (n == REPLY_MORE && !conn_has_ended(one->conn))
            return false;
        if (n == REPLY_MORE || n == REPLY_BAD || !is_right(&reply, *one->wanted)) {
            fail(one, "not the answer that when-down says");
            return false;
        }
        conn_take(one->conn, n);
        one->wanted++;
    }
    return true;
}

/* An answered client asks again on another connection, while Redis hangs. */
static void take_turn(struct party *party)
{
    struct asking *one = container_of(party, struct asking, party);
    if (one->conn == NULL || !take_replies(one))
        return;
    leave(one);
    if (world.now_ns < hangs.until_ns)
        world_ring_at(&one->bell, world.now_ns + PACE_NS);
}

/* ---- the hang ---- */

/*
 * Begins no hang where memory is refused: any client may then get an error, or be closed. Begins no
 * hang where descriptors are few: weir may accept a connection only after another has closed.
 */
void hangs_begin(uint64_t pick)
{
    bool has_plenty =
        run.plan.memory.mode == MEMORY_PLENTY && run.plan.odds.fds == KERNEL_FDS_ENOUGH;
    if (!has_plenty || run.replies == 0 || !server_is_up() || !faults_are_over() ||
        world.now_ns < hangs.until_ns + HANG_NS - ASKED_NS)
        return;
    hangs.until_ns = world.now_ns + ASKED_NS;
    server_sleep(HANG_NS);
    faults_rest(HANG_NS);
    run.is_faultless = false;
    for (unsigned i = 0; i < 1 + pick % CLIENTS; i++)
        ask(&all[i]);
}

void hangs_note_not_run(void)
{
    hangs.not_run_ns = world.now_ns;
}

void hangs_start(void)
{
    hangs = (struct hangs){0};
    for (unsigned i = 0; i < CLIENTS; i++)
        all[i] = (struct asking){.party = {.turn = take_turn, .kind = "asking", .index = i},
                                 .bell.ring = on_bell};
}

void hangs_end(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        leave(&all[i]);
}

void hangs_stop(void)
{
    hangs_end();
    for (unsigned i = 0; i < CLIENTS; i++)
        world_leave(&all[i].party);
}
