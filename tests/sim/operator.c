#include "tests/sim/operator.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "resp/emit.h"
#include "tests/sim/admin.h"
#include "tests/sim/listen_address.h"
#include "tests/sim/memory.h"
#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/reply.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"

#define THINK_NS UINT64_C(200000000)
#define STRANGER 77 /* neither root nor weir's own user */
#define WORDS_MAX 10
#define PAUSE "pause"

enum { STREAM_OPERATOR = 7 };

struct task {
    const char *name;
    unsigned weight;
    const char *words; /* NULL: call `say`, which returns false if it cannot send now */
    char type;         /* first byte of the reply; 0: any, '-': an error */
    bool (*say)(uint32_t a);
};

static struct operator
{
    struct party party;
    struct conn *conn;
    struct random chance;
    struct bytes in, out;
    const struct task *task; /* the command without a reply yet; NULL: none */
    bool is_stranger, has_entered, has_left;
    unsigned life;
    uint64_t acts_ns, said_ns; /* when the operator sends next, and sent last */
}
me;

/* ---- requests ---- */

static void say_raw_text(const char *text, size_t n)
{
    if (!bytes_add(&me.out, slice_of(text, n), SIZE_MAX))
        abort();
}

static void say_part(char type, size_t n)
{
    char header[EMIT_HEADER_MAX];
    say_raw_text(header, emit_header(header, type, (int64_t)n));
}

static void say_one(struct slice word)
{
    say_part('$', word.len);
    say_raw_text(word.at, word.len);
    say_raw_text("\r\n", 2);
}

/* Splits the text at blanks into words. */
static void say_words(const char *text)
{
    struct slice words[WORDS_MAX];
    size_t n = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        words[n++] = slice_of(text, len);
        text += len + (text[len] == ' ');
    }
    say_part('*', n);
    for (size_t i = 0; i < n; i++)
        say_one(words[i]);
}

static bool order(const struct planned_limits *to, struct slice words)
{
    if (!regime_order(to))
        return false;
    say_words(words.at);
    return true;
}

static bool say_set(uint32_t a)
{
    char text[WORD_ROOM];
    struct planned_limits to = *regime_limits();
    if (to.n == 0)
        return false;
    struct planned_limit *limit = &to.all[a % to.n];
    uint64_t state = a;
    limit->count = 1 + (uint32_t)dice_below(&state, 5000);
    limit->burst = 1 + (uint32_t)dice_below(&state, WINDOW_KEPT / 2 - 1);
    limit->delay_ms = 0;
    return order(&to, print(text, "LIMIT SET default %s %u/%ums burst %u",
                            limits_class_name(limit->class), limit->count, limit->period_ms,
                            limit->burst));
}

static bool say_unset(uint32_t a)
{
    char text[WORD_ROOM];
    struct planned_limits to = *regime_limits();
    if (to.n == 0)
        return false;
    unsigned i = a % to.n;
    struct slice words = print(text, "LIMIT UNSET default %s", limits_class_name(to.all[i].class));
    to.all[i] = to.all[--to.n];
    return order(&to, words);
}

static bool say_mode(uint32_t a)
{
    struct planned_limits to = *regime_limits();
    to.is_shadow = a % 2 == 0;
    return order(&to, to.is_shadow ? SLICE("LIMIT MODE shadow") : SLICE("LIMIT MODE enforce"));
}

static bool say_reload(uint32_t a)
{
    (void)a;
    return regime_is_filed() && order(regime_filed(), SLICE("LIMIT RELOAD"));
}

static const struct task tasks[] = {
    {"help", 1, "LIMIT HELP", '*', NULL},
    {"status", 2, "LIMIT STATUS", '*', NULL},
    {"list", 6, "LIMIT LIST", '*', NULL},
    {"top", 3, "LIMIT TOP 5", '*', NULL},
    {"top_by", 3, "LIMIT TOP 3 BY REFUSED", '*', NULL},
    {"suggest", 3, "LIMIT SUGGEST", '*', NULL},
    {"log", 2, "LIMIT LOG 20", '*', NULL},
    {"slow", 2, "LIMIT SLOWLOG GET 5", '*', NULL},
    {"slow_len", 1, "LIMIT SLOWLOG LEN", ':', NULL},
    {"slow_reset", 1, "LIMIT SLOWLOG RESET", '+', NULL},
    {"explain", 3, "LIMIT EXPLAIN GET k", '*', NULL},
    {"explain_for", 3, "LIMIT EXPLAIN SET k v FOR user:u1", 0, NULL},
    {"status_for", 3, "LIMIT STATUS FOR ip:10.0.0.1", 0, NULL},
    {"diff", 3, "LIMIT DIFF", '*', NULL},
    {"ping", 3, "PING", 0, NULL},
    {"get", 3, "GET k", 0, NULL},
    {"mode_is", 2, "LIMIT MODE", 0, NULL},
    {"wrong_class", 2, "LIMIT SET default raed 5/s", '-', NULL},
    {"wrong_rate", 2, "LIMIT SET default read 5/lightyear", '-', NULL},
    {"wrong_policy", 2, "LIMIT SET nobody read 5/s", '-', NULL},
    {"wrong_mode", 1, "LIMIT MODE maybe", '-', NULL},
    {"forgive_none", 1, "LIMIT FORGIVE ip:9.9.9.9", 0, NULL},
    {"set", 10, NULL, '+', say_set},
    {"unset", 2, NULL, '+', say_unset},
    {"mode", 4, NULL, '+', say_mode},
    {"reload", 3, NULL, '+', say_reload},
};
#define N_TASKS (sizeof tasks / sizeof tasks[0])

static const struct task *draw(void)
{
    uint64_t whole = 0;
    for (size_t i = 0; i < N_TASKS; i++)
        whole += tasks[i].weight;
    uint64_t drawn = random_below(&me.chance, whole);
    size_t i = 0;
    for (; drawn >= tasks[i].weight; i++)
        drawn -= tasks[i].weight;
    return &tasks[i];
}

static const struct task *find(const char *name)
{
    for (size_t i = 0; i < N_TASKS; i++)
        if (strcmp(tasks[i].name, name) == 0)
            return &tasks[i];
    return NULL;
}

/* Operators log in too where Redis requires a password. */
static const struct task *enter(void)
{
    static const struct task task = {"enter", 0, NULL, 0, NULL};
    me.has_entered = true;
    say_part('*', 2);
    say_one(SLICE("AUTH"));
    say_one(run.passwords % 2 == 0 ? SLICE(PASSWORD) : SLICE(OTHER_PASSWORD));
    return &task;
}

static void begin(const struct task *task, uint32_t a)
{
    scenario_note(SCENARIO_OPERATOR, task->name, a, 0, 0);
    if (!admin_lets_in() && !me.has_entered)
        task = enter();
    else if (task->say == NULL)
        say_words(task->words);
    else if (!task->say(a))
        return;
    me.task = task;
    me.said_ns = world.now_ns;
}

/* ---- connection ---- */

static void rest(void)
{
    uint64_t ns = 0;
    const struct line *line = scenario_is_replayed() ? scenario_peek(SCENARIO_OPERATOR) : NULL;
    if (line != NULL && strcmp(line->name, PAUSE) == 0) {
        ns = line->numbers[0];
        scenario_take(SCENARIO_OPERATOR);
    } else if (!scenario_is_replayed()) {
        ns = random_scale(&me.chance, THINK_NS);
        scenario_note(SCENARIO_OPERATOR, PAUSE, ns, 0, 0);
    }
    bool is_over = scenario_is_replayed() && line == NULL;
    me.acts_ns = is_over ? UINT64_MAX : world.now_ns + ns;
}

static void dial(void)
{
    me.life++;
    me.in.len = me.out.len = 0;
    me.has_entered = false;
    me.conn = conn_dial(0, ADMIN_PATH, NULL, 0, &me.party, &me);
    if (me.conn == NULL)
        return;
    me.is_stranger = me.life % 8 == 0;
    me.conn->uid = me.is_stranger ? STRANGER : 0;
    conn_call(me.conn, SIDE_OPERATOR, 0, me.life);
}

static void hang_up(bool with_reset)
{
    trace_note(with_reset ? TRACE_RESET : TRACE_CLOSE, me.conn->number, NULL, 0);
    conn_close(me.conn, with_reset);
    me.conn = NULL;
    if (me.task != NULL && me.task->say != NULL)
        regime_order_lost();
    me.task = NULL;
}

void operator_rest(uint64_t until_ns)
{
    if (me.acts_ns < until_ns)
        me.acts_ns = until_ns;
}

void operator_hang_up(void)
{
    hang_up(true);
    world_wake(&me.party);
}

static void complain(const struct reply *reply, const char *why)
{
    run_blame("operator", why);
    run_fail(me.conn->number, "the operator (connection %u): %s: %s: %.*s", me.conn->number,
             me.task != NULL ? me.task->name : "nothing", why,
             (int)(reply->whole.len < 200 ? reply->whole.len : 200), reply->whole.at);
}

static bool is_out_of_memory(const struct reply *reply)
{
    return memory_was_short() && reply_is(reply, '-', SLICE("ERR out of memory"));
}

/* True if the refusal is not the command's fault. */
static bool is_excused_here(const struct task *task, const struct reply *reply)
{
    bool is_of_file = reply_begins(reply, '-', SLICE("ERR the file cannot be compared: "));
    bool may_want_password = run.plan.has_password || run.plan.may_change_password;
    return is_out_of_memory(reply) ||
           (may_want_password && reply_begins(reply, '-', SLICE("NOAUTH "))) ||
           (is_of_file && !regime_was_filed(me.said_ns) && strcmp(task->name, "diff") == 0);
}

static void take_reply(const struct reply *reply)
{
    const struct task *task = me.task;
    trace_note(TRACE_REPLY, me.conn->number, reply->whole.at, reply->whole.len);
    if (is_out_of_memory(reply) && (task == NULL || me.is_stranger))
        return; /* out of memory for the connection, which is closed next */
    if (task == NULL)
        complain(reply, "nobody has asked");
    if (me.is_stranger)
        complain(reply, "a stranger is answered");
    bool is_refused = is_excused_here(task, reply);
    if (!is_refused && task->type != 0 && reply->type != task->type)
        complain(reply, "not an answer to that");
    me.task = NULL;
    if (task->say != NULL && is_refused)
        regime_order_refused();
    else if (task->say != NULL)
        regime_order_done();
}

static void take_replies(void)
{
    struct slice here = conn_here(me.conn);
    if (here.len == 0)
        return;
    if (!bytes_add(&me.in, here, SIZE_MAX))
        abort();
    conn_take(me.conn, here.len);
    struct slice rest_of = bytes_slice(&me.in);
    struct reply reply;
    size_t size;
    while ((size = reply_read(rest_of, &reply)) != REPLY_MORE && size != REPLY_BAD) {
        take_reply(&reply);
        rest_of = slice_of(rest_of.at + size, rest_of.len - size);
    }
    if (size == REPLY_BAD) {
        reply.whole = rest_of;
        complain(&reply, "no reply");
    }
    memmove(me.in.at, rest_of.at, rest_of.len);
    me.in.len = rest_of.len;
}

static void flush(void)
{
    size_t n = me.out.len > 0 ? conn_send(me.conn, me.out.at, me.out.len) : 0;
    if (n == 0)
        return;
    trace_note(TRACE_SEND, me.conn->number, me.out.at, n);
    memmove(me.out.at, me.out.at + n, me.out.len - n);
    me.out.len -= n;
}

static void act(void)
{
    if (!scenario_is_replayed()) {
        begin(draw(), (uint32_t)random_next(&me.chance));
        return;
    }
    const struct line *line = scenario_peek(SCENARIO_OPERATOR);
    const struct task *task =
        line != NULL && strcmp(line->name, PAUSE) != 0 ? find(line->name) : NULL;
    if (task == NULL)
        return;
    scenario_take(SCENARIO_OPERATOR);
    begin(task, (uint32_t)line->numbers[0]);
}

static void take_turn(struct party *party)
{
    bool is_due =
        world.now_ns >= me.acts_ns && run.phase == RUN_ACTS && me.task == NULL && !me.has_left;
    if (me.conn == NULL && is_due)
        dial();
    if (me.conn != NULL)
        take_replies();
    if (me.conn != NULL && conn_is_over(me.conn)) {
        bool may_close = !run.is_faultless || me.is_stranger || run.phase == RUN_STOPS;
        if (!may_close && !memory_explains_end())
            run_fail(me.conn->number, "the operator (connection %u): closed, and nothing was wrong",
                     me.conn->number);
        hang_up(false);
    }
    if (is_due) {
        rest();
        if (me.conn != NULL)
            act();
    }
    if (me.conn != NULL)
        flush();
    if (run.phase == RUN_ACTS && me.task == NULL && me.acts_ns != UINT64_MAX)
        world_wake_at(party, me.acts_ns);
}

void operator_start(void)
{
    me = (struct operator){.party = {.turn = take_turn, .kind = "operator"}};
    random_init(&me.chance, run.plan.seed, STREAM_OPERATOR);
    if (!run.plan.has_operator)
        return;
    rest();
    world_wake_at(&me.party, me.acts_ns);
}

void operator_leave(void)
{
    me.has_left = true;
    if (me.conn != NULL)
        hang_up(false);
}

void operator_stop(void)
{
    operator_leave();
    bytes_fini(&me.in);
    bytes_fini(&me.out);
    world_leave(&me.party);
}

bool operator_is_waiting(void)
{
    return me.conn != NULL && me.task != NULL && !me.is_stranger;
}

struct conn *operator_conn(void)
{
    return me.conn;
}
