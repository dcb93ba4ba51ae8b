#include "tests/sim/sentinel_model.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "tests/sim/reply.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define SENTINELS 3
#define FIRST_HOST 11
#define PORT 26379
#define HEARS_NS (400 * MS) /* longest delay until a sentinel learns of a new master */
#define ANSWER_ROOM 4096
#define WORDS_MAX 4
#define QUESTIONS_MOST 10 /* in a second */
#define LIE_EPOCHS 1000

enum { STREAM_SENTINELS = 16 };

/* The trouble of a sentinel. */
enum trouble {
    TROUBLE_NONE,
    TROUBLE_DOWN,
    TROUBLE_HANGS,
    TROUBLE_LIES,
    TROUBLE_KNOWS_NONE,
    TROUBLES
};

static struct sentinel {
    struct list visitors;
    struct bell hears; /* rings when the sentinel learns sentinels.master */
    unsigned named;
    uint64_t epoch;
    enum trouble trouble;
    uint64_t asked_ns[QUESTIONS_MOST]; /* a ring */
    unsigned n_asked;
} all[SENTINELS];

struct visitor {
    struct party party;
    struct sentinel *sentinel;
    struct conn *conn;
    struct list all;
    bool is_subscribed;
};

static struct sentinels {
    unsigned master;
    uint64_t epoch;
    unsigned amiss;
    struct bell mended;
    struct random chance;
} sentinels;

static unsigned index_of(const struct sentinel *sentinel)
{
    return (unsigned)(sentinel - all);
}

/* ---- answers ---- */

struct answer {
    char text[ANSWER_ROOM];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct answer *answer, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    answer->n += (size_t)vsnprintf(answer->text + answer->n, ANSWER_ROOM - answer->n, format, args);
    va_end(args);
}

static void add_word(struct answer *answer, const char *word)
{
    add(answer, "$%zu\r\n%s\r\n", strlen(word), word);
}

static void add_field(struct answer *answer, const char *name, const char *format, uint64_t number)
{
    char value[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(value, sizeof value, format, (unsigned)number);
#pragma GCC diagnostic pop
    add_word(answer, name);
    add_word(answer, value);
}

static void add_server(struct answer *answer, unsigned which, const char *flags, uint64_t epoch)
{
    add(answer, "%%6\r\n");
    add_field(answer, "name", "server-%u", which);
    add_field(answer, "ip", "127.0.0.%u", which + 1);
    add_field(answer, "port", "%u", SERVER_PORT);
    add_field(answer, "runid", "run-%u", which);
    add_field(answer, "flags", flags, 0);
    add_field(answer, "config-epoch", "%u", epoch);
}

static unsigned named_by(const struct sentinel *sentinel)
{
    bool lies = sentinel->trouble == TROUBLE_LIES;
    return lies ? (sentinel->named + 1) % run.plan.servers : sentinel->named;
}

static void tell_master(const struct sentinel *sentinel, struct answer *answer)
{
    uint64_t more = sentinel->trouble == TROUBLE_LIES ? LIE_EPOCHS : 0;
    if (sentinel->trouble == TROUBLE_KNOWS_NONE)
        add(answer, "-ERR No such master with that name\r\n");
    else
        add_server(answer, named_by(sentinel), "master", sentinel->epoch + more);
}

static void tell_peers(const struct sentinel *sentinel, struct answer *answer)
{
    add(answer, "*%u\r\n", SENTINELS - 1);
    for (unsigned i = 0; i < SENTINELS; i++) {
        if (i == index_of(sentinel))
            continue;
        add(answer, "%%5\r\n");
        add_field(answer, "name", "sentinel-%u", i);
        add_field(answer, "ip", "127.0.0.%u", FIRST_HOST + i);
        add_field(answer, "port", "%u", PORT);
        add_field(answer, "runid", "sentinel-%u", i);
        add_field(answer, "flags", "sentinel", 0);
    }
}

static void tell_replicas(const struct sentinel *sentinel, struct answer *answer)
{
    add(answer, "*%u\r\n", run.plan.servers - 1);
    for (unsigned i = 0; i < run.plan.servers; i++)
        if (i != sentinel->named)
            add_server(answer, i, "slave", 0);
}

static void tell_hello(struct answer *answer)
{
    add(answer,
        "%%4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n");
    add(answer, "$4\r\nmode\r\n$8\r\nsentinel\r\n");
}

static void answer_words(struct visitor *visitor, const struct slice words[WORDS_MAX],
                         struct answer *answer)
{
    const struct sentinel *sentinel = visitor->sentinel;
    bool is_own = slice_eq(words[0], SLICE("SENTINEL"));
    if (slice_eq(words[0], SLICE("HELLO")))
        tell_hello(answer);
    else if (slice_eq(words[0], SLICE("SUBSCRIBE"))) {
        visitor->is_subscribed = true;
        add(answer, ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    } else if (is_own && slice_eq(words[1], SLICE("MYID")))
        add(answer, "$10\r\nsentinel-%u\r\n", index_of(sentinel));
    else if (is_own && slice_eq(words[1], SLICE("MASTER")))
        tell_master(sentinel, answer);
    else if (is_own && slice_eq(words[1], SLICE("SENTINELS")))
        tell_peers(sentinel, answer);
    else if (is_own && slice_eq(words[1], SLICE("REPLICAS")))
        tell_replicas(sentinel, answer);
    else
        add(answer, "-ERR unknown command\r\n");
}

/* ---- connections ---- */

static void leave(struct visitor *visitor, bool with_reset)
{
    conn_close(visitor->conn, with_reset);
    world_leave(&visitor->party);
    list_take(&visitor->all);
    free(visitor);
}

static void say(struct visitor *visitor, const struct answer *answer)
{
    if (conn_send(visitor->conn, answer->text, answer->n) < answer->n)
        conn_shut(visitor->conn); /* impossible: an answer fits into a window */
    trace_note(TRACE_REDIS, visitor->conn->number, answer->text, answer->n);
}

/* Checks that weir does not ask too often. */
static void count_question(const struct visitor *visitor)
{
    struct sentinel *sentinel = visitor->sentinel;
    uint64_t *at = &sentinel->asked_ns[sentinel->n_asked++ % QUESTIONS_MOST];
    if (run.plan.is_pure && *at != 0 && world.now_ns - *at < S) {
        run_blame("sentinel", "more than ten questions in a second");
        run_fail(visitor->conn->number, "sentinel %u is asked more than ten questions in a second",
                 index_of(sentinel));
    }
    *at = world.now_ns;
}

static void hear_question(struct visitor *visitor, const struct reply *question)
{
    struct slice words[WORDS_MAX] = {{0}};
    struct reply word;
    struct answer answer = {.n = 0};
    for (size_t i = 0; i < WORDS_MAX && reply_at(question, i, &word); i++)
        words[i] = word.text;
    count_question(visitor);
    if (visitor->sentinel->trouble == TROUBLE_HANGS)
        return;
    answer_words(visitor, words, &answer);
    say(visitor, &answer);
}

static void visit(struct party *party)
{
    struct visitor *visitor = container_of(party, struct visitor, party);
    struct reply question;
    size_t n;
    while ((n = reply_read(conn_here(visitor->conn), &question)) != REPLY_MORE) {
        if (n == REPLY_BAD)
            run_fail(visitor->conn->number, "a sentinel hears what is no question");
        hear_question(visitor, &question);
        conn_take(visitor->conn, n);
    }
    if (conn_has_ended(visitor->conn))
        leave(visitor, false);
}

bool sentinel_model_dialled(struct conn *conn, bool *is_taken)
{
    const struct sockaddr_in *in = (const void *)&conn->peer;
    unsigned which = ntohl(in->sin_addr.s_addr) - INADDR_LOOPBACK + 1 - FIRST_HOST;
    if (ntohs(in->sin_port) != PORT)
        return false;
    *is_taken = which < SENTINELS && all[which].trouble != TROUBLE_DOWN;
    if (!*is_taken)
        return true;
    struct visitor *visitor = mem_zalloc(1, sizeof *visitor);
    visitor->party = (struct party){.turn = visit, .kind = "sentinel", .index = conn->number};
    visitor->sentinel = &all[which];
    visitor->conn = conn;
    list_push(&all[which].visitors, &visitor->all);
    conn->host = &visitor->party;
    conn->owner = visitor;
    return true;
}

/* ---- knowledge ---- */

static void publish(struct sentinel *sentinel, unsigned before)
{
    char text[96];
    struct answer answer = {.n = 0};
    snprintf(text, sizeof text, "main 127.0.0.%u %u 127.0.0.%u %u", before + 1, SERVER_PORT,
             sentinel->named + 1, SERVER_PORT);
    add(&answer, ">3\r\n");
    add_word(&answer, "message");
    add_word(&answer, "+switch-master");
    add_word(&answer, text);
    for (struct list *at = sentinel->visitors.next; at != &sentinel->visitors; at = at->next) {
        struct visitor *visitor = container_of(at, struct visitor, all);
        if (visitor->is_subscribed)
            say(visitor, &answer);
    }
}

static void hear(struct sentinel *sentinel)
{
    unsigned before = sentinel->named;
    world_silence(&sentinel->hears);
    sentinel->named = sentinels.master;
    sentinel->epoch = sentinels.epoch;
    if (before != sentinel->named && sentinel->trouble == TROUBLE_NONE)
        publish(sentinel, before);
}

static void on_hears(struct bell *bell)
{
    hear(container_of(bell, struct sentinel, hears));
}

void sentinel_model_hear(unsigned master)
{
    sentinels.master = master;
    sentinels.epoch++;
    for (unsigned i = 0; run.plan.has_sentinels && i < SENTINELS; i++)
        world_ring_at(&all[i].hears, world.now_ns + random_below(&sentinels.chance, HEARS_NS));
}

static void mend(void)
{
    world_silence(&sentinels.mended);
    all[sentinels.amiss].trouble = TROUBLE_NONE;
}

static void on_mended(struct bell *bell)
{
    (void)bell;
    mend();
}

static void drive_out(struct sentinel *sentinel, bool with_reset)
{
    while (!list_is_empty(&sentinel->visitors))
        leave(container_of(sentinel->visitors.next, struct visitor, all), with_reset);
}

void sentinel_model_fail(uint64_t ns, uint64_t pick)
{
    if (!run.plan.has_sentinels || sentinels.mended.due.place != 0)
        return;
    sentinels.amiss = (unsigned)(pick % SENTINELS);
    struct sentinel *sentinel = &all[sentinels.amiss];
    sentinel->trouble = (enum trouble)(TROUBLE_NONE + 1 + pick / SENTINELS % (TROUBLES - 1));
    if (sentinel->trouble == TROUBLE_DOWN)
        drive_out(sentinel, pick / 64 % 2 == 0);
    world_ring_at(&sentinels.mended, world.now_ns + ns);
}

/* ---- start and end ---- */

void sentinel_model_start(unsigned master)
{
    sentinels = (struct sentinels){.master = master, .epoch = 1, .mended.ring = on_mended};
    random_init(&sentinels.chance, run.plan.seed, STREAM_SENTINELS);
    for (unsigned i = 0; i < SENTINELS; i++) {
        all[i] = (struct sentinel){.hears.ring = on_hears, .named = master, .epoch = 1};
        list_init(&all[i].visitors);
    }
}

void sentinel_model_end(void)
{
    if (sentinels.mended.due.place != 0)
        mend();
    for (unsigned i = 0; i < SENTINELS; i++)
        if (all[i].hears.due.place != 0)
            hear(&all[i]);
}

void sentinel_model_stop(void)
{
    world_silence(&sentinels.mended);
    for (unsigned i = 0; i < SENTINELS; i++) {
        world_silence(&all[i].hears);
        drive_out(&all[i], true);
    }
}
