#include "tests/sim/travellers.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/masters.h"
#include "tests/sim/kernel.h"
#include "tests/sim/reply.h"
#include "tests/sim/run.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define PORT 6380
#define NET 0x0a000500U /* 10.0.5.0 */
#define TRAVELLERS 6
#define USERS 3 /* u1 .. of run.c */
#define KEYS 8  /* the first two share a slot, and so do the next two */
#define TAGGED 4
#define PARTS_MAX 4
#define ASKED_MAX 64
#define BURST_MAX 16
#define ACT_NS (60 * MS) /* longest time between two bursts */
#define AGAIN_NS (20 * MS)
#define REQUEST_ROOM 512

enum { STREAM_TRAVELLERS = 42 };

/* KIND_QUEUED: a command inside MULTI; the keys are with KIND_EXEC. */
enum kind {
    KIND_AUTH,
    KIND_ADD,
    KIND_GET,
    KIND_SET,
    KIND_ECHO,
    KIND_MGET,
    KIND_MSET,
    KIND_EXISTS,
    KIND_EVAL,
    KIND_MULTI,
    KIND_QUEUED,
    KIND_EXEC
};

/* A request without a reply yet. */
struct asked {
    enum kind kind;
    uint64_t said_ns, serial;
    unsigned n; /* number of keys */
    struct part {
        unsigned key;
        int64_t value; /* value in the reply */
    } parts[PARTS_MAX];
};

static struct traveller {
    struct party party;
    struct random chance;
    struct conn *conn;
    uint64_t acts_ns, serial;
    unsigned life;
    uint64_t began_ns; /* start of this connection */
    struct key {
        char name[40];
        int64_t value; /* value after all requests sent; 0: no key */
    } keys[KEYS];
    struct asked asked[ASKED_MAX];
    unsigned n_asked;
} all[TRAVELLERS];

__attribute__((noreturn, format(printf, 2, 3))) static void complain(
    const struct traveller *traveller, const char *why, ...)
{
    char text[256];
    va_list args;
    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    run_blame("traveller", why);
    run_fail(traveller->conn->number, "traveller %u: %s", traveller->party.index, text);
}

/* ---- requests ---- */

struct words {
    char text[REQUEST_ROOM];
    size_t len;
};

static void add_words(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_words(struct words *words, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    words->len +=
        (size_t)vsnprintf(words->text + words->len, sizeof words->text - words->len, format, args);
    va_end(args);
}

static void utter(struct traveller *traveller, struct words *words)
{
    add_words(words, "\r\n");
    if (conn_send(traveller->conn, words->text, words->len) != words->len)
        complain(traveller, "its window has no room for a request");
    trace_note(TRACE_SEND, traveller->conn->number, words->text, words->len);
    run.commands++;
}

static struct asked *ask(struct traveller *traveller, enum kind kind)
{
    struct asked *asked = &traveller->asked[traveller->n_asked++];
    *asked = (struct asked){.kind = kind, .said_ns = world.now_ns, .serial = ++traveller->serial};
    return asked;
}

static void expect(struct traveller *traveller, struct asked *asked, unsigned key)
{
    asked->parts[asked->n++] = (struct part){key, traveller->keys[key].value};
}

static void say_of_one(struct traveller *traveller, enum kind kind, unsigned key)
{
    struct words words = {.len = 0};
    struct key *at = &traveller->keys[key];
    if (kind == KIND_ADD)
        add_words(&words, "INCR %s", at->name);
    else if (kind == KIND_GET)
        add_words(&words, "GET %s", at->name);
    else if (kind == KIND_SET)
        add_words(&words, "SET %s %" PRId64, at->name, at->value + 10);
    else
        add_words(&words, "EVAL \"return redis.call('INCR',KEYS[1])\" 1 %s", at->name);
    at->value += kind == KIND_GET ? 0 : kind == KIND_SET ? 10 : 1;
    expect(traveller, ask(traveller, kind), key);
    utter(traveller, &words);
}

static bool splits_all(void)
{
    return strstr(run.plan.config, "split-all") != NULL;
}

/* Picks different keys: of one slot, or of several. */
static unsigned pick_keys(struct traveller *traveller, bool is_one_slot, unsigned *keys)
{
    unsigned n_apart = KEYS - TAGGED + 2; /* the first of each pair */
    if (!is_one_slot && !run.plan.has_pairs) {
        unsigned at = (unsigned)random_below(&traveller->chance, n_apart), most = PARTS_MAX - 1;
        unsigned some = 2 + (unsigned)random_below(&traveller->chance, most);
        for (unsigned i = 0; i < some; i++)
            keys[i] = (at + i) % n_apart < 2 ? 2 * ((at + i) % n_apart) : (at + i) % n_apart + 2;
        return some;
    }
    unsigned first = (unsigned)random_below(&traveller->chance, is_one_slot ? TAGGED / 2 : KEYS);
    unsigned n = is_one_slot ? 2 : 2 + (unsigned)random_below(&traveller->chance, PARTS_MAX - 1);
    for (unsigned i = 0; i < n; i++)
        keys[i] = is_one_slot ? 2 * first + i : (first + i) % KEYS;
    return n;
}

static void say_of_several(struct traveller *traveller, enum kind kind)
{
    static const char *const names[] = {
        [KIND_MGET] = "MGET", [KIND_MSET] = "MSET", [KIND_EXISTS] = "EXISTS"};
    struct words words = {.len = 0};
    unsigned keys[PARTS_MAX];
    bool is_one_slot =
        run.plan.has_pairs && (kind == KIND_MSET || random_hits(&traveller->chance, 300000));
    unsigned n = pick_keys(traveller, is_one_slot, keys);
    add_words(&words, "%s", names[kind]);
    struct asked *asked = ask(traveller, kind);
    for (unsigned i = 0; i < n; i++) {
        struct key *key = &traveller->keys[keys[i]];
        add_words(&words, " %s", key->name);
        key->value += kind == KIND_MSET ? 10 : 0;
        if (kind == KIND_MSET)
            add_words(&words, " %" PRId64, key->value);
        expect(traveller, asked, keys[i]);
    }
    utter(traveller, &words);
}

static void say_word(struct traveller *traveller, enum kind kind, const char *word)
{
    struct words words = {.len = 0};
    add_words(&words, "%s", word);
    ask(traveller, kind);
    utter(traveller, &words);
}

/* INCR of two keys of one slot, in MULTI. */
static void say_transaction(struct traveller *traveller)
{
    unsigned keys[PARTS_MAX];
    unsigned n = pick_keys(traveller, true, keys);
    say_word(traveller, KIND_MULTI, "MULTI");
    for (unsigned i = 0; i < n; i++) {
        struct words words = {.len = 0};
        add_words(&words, "INCR %s", traveller->keys[keys[i]].name);
        ask(traveller, KIND_QUEUED);
        utter(traveller, &words);
    }
    struct asked *exec = &traveller->asked[traveller->n_asked];
    say_word(traveller, KIND_EXEC, "EXEC");
    for (unsigned i = 0; i < n; i++) {
        traveller->keys[keys[i]].value++;
        expect(traveller, exec, keys[i]);
    }
}

static void say_echo(struct traveller *traveller)
{
    struct words words = {.len = 0};
    const struct asked *asked = ask(traveller, KIND_ECHO);
    add_words(&words, "ECHO %u:%" PRIu64, traveller->party.index, asked->serial);
    utter(traveller, &words);
}

static void say(struct traveller *traveller)
{
    uint64_t pick = random_below(&traveller->chance, 100);
    unsigned key = (unsigned)random_below(&traveller->chance, KEYS);
    if (pick < 35)
        say_of_one(traveller, KIND_ADD, key);
    else if (pick < 50)
        say_of_one(traveller, KIND_GET, key);
    else if (pick < 60)
        say_of_one(traveller, KIND_SET, key);
    else if (pick < 65)
        say_echo(traveller);
    else if (pick < 78)
        say_of_several(traveller, KIND_MGET);
    else if (pick < 86 && (run.plan.has_pairs || splits_all()))
        say_of_several(traveller, KIND_MSET);
    else if (pick < 91)
        say_of_several(traveller, KIND_EXISTS);
    else if (pick < 96 && run.plan.has_pairs)
        say_transaction(traveller);
    else
        say_of_one(traveller, KIND_EVAL, key);
}

static void say_some(struct traveller *traveller)
{
    uint64_t n = 1 + random_below(&traveller->chance, BURST_MAX);
    for (; n > 0 && traveller->n_asked + PARTS_MAX < ASKED_MAX; n--)
        /* room for all words of a request */
        if (pipe_space(&traveller->conn->to_weir) >= REQUEST_ROOM)
            say(traveller);
}

/* Uses new keys. */
static void begin_life(struct traveller *traveller)
{
    unsigned i = traveller->party.index, life = ++traveller->life;
    traveller->began_ns = world.now_ns;
    for (unsigned k = 0; k < KEYS; k++) {
        struct key *key = &traveller->keys[k];
        *key = (struct key){.value = 0};
        if (k < TAGGED / 2)
            snprintf(key->name, sizeof key->name, "{t%u:%u}%u", i, life, k);
        else if (k < TAGGED)
            snprintf(key->name, sizeof key->name, "{all}%u:%u:%u", i, life, k);
        else
            snprintf(key->name, sizeof key->name, "t%u:%u:%u", i, life, k);
    }
}

static void come(struct traveller *traveller)
{
    struct words words = {.len = 0};
    uint16_t port = (uint16_t)(30000 + traveller->life % 20000);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(port)};
    unsigned user = traveller->party.index % (USERS + 1);
    from.sin_addr.s_addr = htonl(NET + traveller->party.index + 1);
    traveller->conn = conn_dial(PORT, NULL, (const struct sockaddr *)&from, sizeof from,
                                &traveller->party, traveller);
    begin_life(traveller);
    if (traveller->conn == NULL || user == 0)
        return;
    add_words(&words, "AUTH u%u pw%u.0", user, user);
    ask(traveller, KIND_AUTH);
    utter(traveller, &words);
}

/* ---- replies ---- */

static unsigned slot_of_key(const struct traveller *traveller, unsigned key)
{
    return redis_slot_of(slice_str(traveller->keys[key].name));
}

static bool was_parted(const struct traveller *traveller, const struct asked *asked)
{
    bool was = false;
    for (unsigned i = 0; i < asked->n; i++)
        was |= masters_was_parted(slot_of_key(traveller, asked->parts[i].key), asked->said_ns);
    return was;
}

/*
 * True if a slot may have come back to a node before all replies. A request that was overtaken at
 * that node is not sent again.
 */
static bool may_be_overtaken(const struct traveller *traveller, const struct asked *asked)
{
    bool may_be = false;
    for (unsigned i = 0; i < asked->n; i++)
        may_be |= masters_moved_again(slot_of_key(traveller, asked->parts[i].key), asked->said_ns);
    return may_be;
}

/* weir checks a redirect of a script again, and may find another node by then: -UPSTREAM moved. */
static bool may_be_unconfirmed(const struct traveller *traveller, const struct asked *asked)
{
    return asked->kind == KIND_EVAL &&
           masters_was_open(slot_of_key(traveller, asked->parts[0].key), asked->said_ns);
}

static void judge_error(const struct traveller *traveller, const struct asked *asked,
                        const struct reply *reply)
{
    bool is_again = reply_begins(reply, '-', SLICE("TRYAGAIN "));
    bool is_moved = reply_begins(reply, '-', SLICE("UPSTREAM moved"));
    if (reply_begins(reply, '-', SLICE("MOVED ")) || reply_begins(reply, '-', SLICE("ASK ")))
        complain(traveller, "it hears a redirect");
    bool is_known = (is_again && was_parted(traveller, asked)) ||
                    (is_moved && masters_has_lied(asked->said_ns));
    is_known |=
        is_moved && (may_be_unconfirmed(traveller, asked) || may_be_overtaken(traveller, asked));
    if (run.plan.is_pure && run.phase != RUN_STOPS && !is_known)
        complain(traveller, "it hears an error, and nothing has gone wrong: %.*s",
                 (int)reply->text.len, reply->text.at);
}

/* True if the reply shows this value. A key that was never set is nil. */
static bool shows(const struct reply *reply, int64_t value)
{
    char text[24];
    if (reply->type == ':')
        return reply->number == value;
    if (value == 0)
        return reply->is_nil || reply->type == '_';
    int n = snprintf(text, sizeof text, "%" PRId64, value);
    return reply_is(reply, '$', slice_of(text, (size_t)n));
}

static void judge_parts(const struct traveller *traveller, const struct asked *asked,
                        const struct reply *reply)
{
    struct reply inner;
    if (reply->type != '*' || reply->is_nil)
        complain(traveller, "it hears no array");
    for (unsigned i = 0; i < asked->n; i++)
        if (!reply_at(reply, i, &inner) || !shows(&inner, asked->parts[i].value))
            complain(traveller,
                     "one of several keys does not show what was written: %s should show %" PRId64,
                     traveller->keys[asked->parts[i].key].name, asked->parts[i].value);
}

static void judge_one(const struct traveller *traveller, const struct asked *asked,
                      const struct reply *reply)
{
    const struct part *part = &asked->parts[0];
    if (reply->type != (asked->kind == KIND_GET ? '$' : ':') || !shows(reply, part->value))
        complain(traveller, "a key does not show what was written: %s should show %" PRId64,
                 traveller->keys[part->key].name, part->value);
}

static void judge_count(const struct traveller *traveller, const struct asked *asked,
                        const struct reply *reply)
{
    int64_t n = 0;
    for (unsigned i = 0; i < asked->n; i++)
        n += asked->parts[i].value > 0;
    if (!reply_is_integer(reply, n))
        complain(traveller, "not so many keys exist: %" PRId64, n);
}

static void judge_echo(const struct traveller *traveller, const struct asked *asked,
                       const struct reply *reply)
{
    char text[48];
    int n = snprintf(text, sizeof text, "%u:%" PRIu64, traveller->party.index, asked->serial);
    if (!reply_is(reply, '$', slice_of(text, (size_t)n)))
        complain(traveller, "it hears another reply than its own");
}

/* A lying node refuses a command and runs the next command for the key, so order cannot be kept. */
static void judge(const struct traveller *traveller, const struct asked *asked,
                  const struct reply *reply)
{
    bool is_of_keys = asked->n > 0 && asked->kind != KIND_SET && asked->kind != KIND_MSET;
    if (is_of_keys && masters_has_lied(traveller->began_ns))
        return;
    switch (asked->kind) {
    case KIND_AUTH:
    case KIND_SET:
    case KIND_MSET:
    case KIND_MULTI:
        if (!reply_is_ok(reply))
            complain(traveller, "it does not hear OK");
        break;
    case KIND_QUEUED:
        if (!reply_is(reply, '+', SLICE("QUEUED")))
            complain(traveller, "it does not hear QUEUED");
        break;
    case KIND_ADD:
    case KIND_GET:
    case KIND_EVAL:
        judge_one(traveller, asked, reply);
        break;
    case KIND_MGET:
    case KIND_EXEC:
        judge_parts(traveller, asked, reply);
        break;
    case KIND_EXISTS:
        judge_count(traveller, asked, reply);
        break;
    case KIND_ECHO:
        judge_echo(traveller, asked, reply);
        break;
    }
}

static void leave(struct traveller *traveller)
{
    trace_note(TRACE_CLOSE, traveller->conn->number, NULL, 0);
    conn_close(traveller->conn, false);
    traveller->conn = NULL;
    traveller->n_asked = 0;
}

/* False: the traveller has disconnected, as the values of its keys are unknown. */
static bool hear(struct traveller *traveller)
{
    struct reply reply;
    size_t n;
    while ((n = reply_read(conn_here(traveller->conn), &reply)) != REPLY_MORE) {
        const struct asked *asked = &traveller->asked[0];
        if (n == REPLY_BAD || traveller->n_asked == 0)
            complain(traveller, "it hears what it has not asked for");
        trace_note(TRACE_REPLY, traveller->conn->number, conn_here(traveller->conn).at, n);
        run.replies++;
        if (reply.type == '-') {
            judge_error(traveller, asked, &reply);
            leave(traveller);
            return false;
        }
        judge(traveller, asked, &reply);
        conn_take(traveller->conn, n);
        memmove(traveller->asked, traveller->asked + 1,
                --traveller->n_asked * sizeof traveller->asked[0]);
    }
    if (!conn_has_ended(traveller->conn))
        return true;
    if (run.plan.is_pure && run.phase != RUN_STOPS)
        complain(traveller, "it is closed, and nothing has gone wrong");
    leave(traveller);
    return false;
}

/* ---- start and end ---- */

static void plan_next(struct traveller *traveller, uint64_t least_ns)
{
    bool is_soon = random_hits(&traveller->chance, 500000);
    uint64_t wait_ns = is_soon ? random_scale(&traveller->chance, ACT_NS)
                               : random_below(&traveller->chance, ACT_NS);
    traveller->acts_ns = world.now_ns + least_ns + wait_ns;
    world_wake_at(&traveller->party, traveller->acts_ns);
}

static void take_turn(struct party *party)
{
    struct traveller *traveller = container_of(party, struct traveller, party);
    if (traveller->conn != NULL && !hear(traveller))
        plan_next(traveller, AGAIN_NS);
    if (run.phase != RUN_ACTS || world.now_ns < traveller->acts_ns)
        return;
    if (traveller->conn == NULL)
        come(traveller);
    if (traveller->conn != NULL)
        say_some(traveller);
    plan_next(traveller, 0);
}

void travellers_start(void)
{
    for (unsigned i = 0; i < TRAVELLERS && run.plan.masters > 0; i++) {
        all[i] = (struct traveller){.party = {.turn = take_turn, .kind = "traveller", .index = i}};
        random_init(&all[i].chance, run.plan.seed, STREAM_TRAVELLERS + 1000 * (i + 1));
        begin_life(&all[i]);
        plan_next(&all[i], 0);
    }
}

unsigned travellers_slot(uint64_t pick)
{
    const struct traveller *traveller = &all[pick % TRAVELLERS];
    return redis_slot_of(slice_str(traveller->keys[pick / TRAVELLERS % KEYS].name));
}

bool travellers_are_waiting(void)
{
    bool is_waiting = false;
    for (unsigned i = 0; i < TRAVELLERS; i++)
        is_waiting |= all[i].conn != NULL && all[i].n_asked > 0;
    return is_waiting;
}

void travellers_leave(void)
{
    for (unsigned i = 0; i < TRAVELLERS; i++)
        if (all[i].conn != NULL)
            leave(&all[i]);
}

void travellers_stop(void)
{
    travellers_leave();
    for (unsigned i = 0; i < TRAVELLERS && run.plan.masters > 0; i++)
        world_leave(&all[i].party);
}
