#include "tests/sim/aborts.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/hangs.h"
#include "tests/sim/kernel.h"
#include "tests/sim/limits.h"
#include "tests/sim/memory.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define PORT 6380
#define NET 0x0a000300U /* 10.0.3.0 */
#define ADDRESSES 3
#define CONNS_MAX 32
#define SERIALS 4096 /* number of newest requests for which the time of sending is kept */
#define TEXT_ROOM 4096
#define EVERY_NS (400 * MS) /* longest time between two acts */
#define EACH_STEPS 60       /* steps of the plan for one act */
#define LARGE 65536         /* size of a large value in bytes */
#define LARGE_KEPT 64
#define IN_FLIGHT 4 /* inflight of ABORTS_POLICY */
#define RATE_BYTES_NS (S / 204800)
#define BURST_BYTES 102400
#define CLOCKS_NS (20 * MS) /* largest lag of a loop's clock */

enum { STREAM_ABORTS = 10 };

enum words {
    SAYS_GET,
    SAYS_SET,
    SAYS_AUTH,
    SAYS_HELLO_AUTH,
    SAYS_OFF,   /* CLIENT REPLY OFF, then GET */
    SAYS_BLOCK, /* BLPOP, then GET */
    SAYS_MULTI,
    SAYS_LARGE, /* replies of LARGE bytes */
    WORDS_COUNT
};

/* One connection. The act that opens it sets all fields. */
static struct aborting {
    struct party party;
    struct bell bell; /* rings when the connection is to be reset */
    struct conn *conn;
    enum words words;
    bool waits_for_bytes; /* the connection is reset once a reply has begun */
} all[CONNS_MAX];

/* What Redis has executed for an address, and how much of the answers weir has read. */
static struct address {
    struct window commands, logins;
    /* calls with answers that weir has not begun to read, as far as the model knows */
    struct answer_at calls[64];
    unsigned n_calls;
    struct large_reply {
        struct answer_at answer;
        uint64_t size;
        /* seen_ns is 0 while weir has not read the reply in full, as far as the model knows */
        uint64_t carried_ns, seen_ns;
    } larges[LARGE_KEPT]; /* a ring */
    uint64_t n_larges;
} addresses[ADDRESSES];

static struct said {
    uint64_t at_ns;
    uint8_t address, words;
} said[SERIALS];

static struct large_reply *answered; /* the large reply that Redis is writing; NULL: none */

static struct aborts {
    struct party party; /* starts the acts */
    struct random chance;
    uint64_t serial, acts, acts_ns, pick;
} aborts;

/* ---- requests ---- */

static struct slice word_of(enum words words)
{
    return words == SAYS_SET ? SLICE("SET") : SLICE("GET");
}

static uint64_t new_serial(unsigned address, enum words words)
{
    uint64_t serial = ++aborts.serial;
    said[serial % SERIALS] = (struct said){world.now_ns, (uint8_t)address, (uint8_t)words};
    return serial;
}

static int write_one(char *out, size_t room, unsigned address, enum words words)
{
    unsigned long long serial = new_serial(address, words);
    if (words == SAYS_AUTH)
        return snprintf(out, room, "AUTH ab:%llu wrong\r\n", serial);
    if (words == SAYS_HELLO_AUTH)
        return snprintf(out, room, "HELLO 3 AUTH ab:%llu wrong\r\n", serial);
    if (words == SAYS_LARGE)
        return snprintf(out, room, "MGET ab:%llu ab:large\r\n", serial);
    if (words == SAYS_SET)
        return snprintf(out, room, "SET ab:%llu x\r\n", serial);
    return snprintf(out, room, "%.*s ab:%llu\r\n", (int)word_of(words).len, word_of(words).at,
                    serial);
}

/* Writes `n` requests, and the words that stand before and behind them. */
static size_t write_all(char *out, unsigned address, enum words words, unsigned n)
{
    static const char *const before[WORDS_COUNT] = {[SAYS_OFF] = "CLIENT REPLY OFF\r\n",
                                                    [SAYS_BLOCK] = "BLPOP ab:list 1\r\n",
                                                    [SAYS_MULTI] = "MULTI\r\n",
                                                    [SAYS_LARGE] = "SETRANGE ab:large 65535 x\r\n"};
    size_t len = (size_t)snprintf(out, TEXT_ROOM, "%s", before[words] != NULL ? before[words] : "");
    for (unsigned i = 0; i < n; i++)
        len += (size_t)write_one(out + len, TEXT_ROOM - len, address, words);
    if (words == SAYS_MULTI)
        len += (size_t)snprintf(out + len, TEXT_ROOM - len, "EXEC\r\n");
    return len;
}

/* ---- connections ---- */

static void leave(struct aborting *one, bool with_reset)
{
    world_silence(&one->bell);
    trace_note(with_reset ? TRACE_RESET : TRACE_CLOSE, one->conn->number, NULL, 0);
    conn_close(one->conn, with_reset);
    one->conn = NULL;
}

static void on_bell(struct bell *bell)
{
    leave(container_of(bell, struct aborting, bell), true);
}

static struct aborting *find_free(void)
{
    for (unsigned i = 0; i < CONNS_MAX; i++)
        if (all[i].conn == NULL)
            return &all[i];
    return NULL;
}

static struct conn *dial(struct aborting *one, unsigned address)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(40000 + aborts.serial % 20000))};
    from.sin_addr.s_addr = htonl(NET + address + 1);
    return conn_dial(PORT, NULL, (const struct sockaddr *)&from, sizeof from, &one->party, one);
}

/* Opens a connection that sends `n` requests. NULL: no connection could be opened. */
static struct aborting *say(unsigned address, enum words words, unsigned n)
{
    char text[TEXT_ROOM];
    struct aborting *one = find_free();
    if (one == NULL)
        return NULL;
    one->words = words;
    one->waits_for_bytes = false;
    struct conn *conn = one->conn = dial(one, address);
    if (conn == NULL)
        return NULL;
    size_t len = write_all(text, address, words, n);
    size_t taken = conn_send(conn, text, len);
    trace_note(TRACE_SEND, conn->number, text, taken);
    return one;
}

static void take_turn(struct party *party)
{
    struct aborting *one = container_of(party, struct aborting, party);
    if (one->conn == NULL)
        return;
    if (one->waits_for_bytes && conn_here(one->conn).len > 0)
        leave(one, true);
    else if (conn_is_over(one->conn))
        leave(one, false);
}

/* ---- acts ---- */

/* Takes the next number below `n` out of the pick, so that a scenario repeats an act exactly. */
static uint64_t take_part(uint64_t *pick, uint64_t n)
{
    uint64_t part = *pick % n;
    *pick /= n;
    return part;
}

static void abort_some(uint64_t pick)
{
    unsigned address = (unsigned)take_part(&pick, ADDRESSES);
    enum words words = (enum words)take_part(&pick, WORDS_COUNT);
    unsigned conns = 1 + (unsigned)take_part(&pick, 6);
    unsigned requests = 1 + (unsigned)take_part(&pick, words == SAYS_LARGE ? 4 : 16);
    uint64_t moment = take_part(&pick, 4);
    for (unsigned i = 0; i < conns; i++) {
        struct aborting *one = say(address, words, requests);
        if (one == NULL)
            return;
        uint64_t here_ns = one->conn->to_weir.last_ns;
        uint64_t wait_ns = moment == 0   ? 0
                           : moment == 1 ? take_part(&pick, 20000)
                                         : take_part(&pick, 3 * MS);
        one->waits_for_bytes = moment == 3;
        world_ring_at(&one->bell, here_ns + (moment == 3 ? S : wait_ns));
    }
}

static void note_next(void)
{
    struct line line = {.party = SCENARIO_ABORTS,
                        .name = "abort",
                        .numbers = {aborts.acts_ns - world.now_ns, aborts.pick}};
    scenario_note_line(&line);
}

static void plan_next(void)
{
    bool is_soon = random_hits(&aborts.chance, 700000);
    uint64_t wait_ns = is_soon ? random_scale(&aborts.chance, EVERY_NS)
                               : 1 + random_below(&aborts.chance, EVERY_NS);
    aborts.pick = random_next(&aborts.chance);
    aborts.acts_ns = world.now_ns + wait_ns;
    if (scenario_is_replayed()) {
        const struct line *line = scenario_peek(SCENARIO_ABORTS);
        aborts.acts_ns = line != NULL ? world.now_ns + line->numbers[0] : UINT64_MAX;
        aborts.pick = line != NULL ? line->numbers[1] : 0;
        if (line != NULL)
            scenario_take(SCENARIO_ABORTS);
    } else {
        note_next();
    }
    if (aborts.acts_ns != UINT64_MAX)
        world_wake_at(&aborts.party, aborts.acts_ns);
}

static void look_at_answers(void);

static void act(struct party *party)
{
    (void)party;
    if (run.phase != RUN_ACTS || world.now_ns < aborts.acts_ns)
        return;
    look_at_answers();
    uint64_t pick = aborts.pick;
    if (run.plan.has_hangs && take_part(&pick, 3) == 0)
        hangs_begin(pick);
    else
        abort_some(pick);
    if (++aborts.acts < run.plan.steps / EACH_STEPS)
        plan_next();
}

/* ---- laws ---- */

/*
 * The laws that are judged. A law that weir does not keep yet has is_held = false. The change that
 * makes weir keep the law sets is_held.
 */
enum law { LAW_COMMANDS, LAW_CALLS, LAW_BYTES, LAW_LOGINS };
static const struct law_row {
    bool is_held;
    const char *blame;
} laws[] = {
    [LAW_COMMANDS] = {true, "more commands than the limit lets pass"},
    [LAW_CALLS] = {true, "more calls are under way than the limit lets be"},
    [LAW_BYTES] = {true, "more bytes than the limit lets pass"},
    [LAW_LOGINS] = {true, "more logins are tried than the limit lets pass"},
};

static void complain(enum law law, const struct said *of)
{
    if (!laws[law].is_held)
        return;
    run_blame("aborts", laws[law].blame);
    run_fail(server_answering().conn, "address 10.0.3.%u: %s", of->address + 1U, laws[law].blame);
}

/*
 * How many funnels a limit may use for an address: the address's own funnel, and the funnel that
 * newcomers share. The shared funnel is used where there is no room or no memory for an own funnel.
 * Calls under way when the address gets its own funnel stay charged to the shared funnel.
 */
static unsigned funnels(void)
{
    return memory_was_short() || strstr(run.plan.config, "max-subjects") != NULL ? 2 : 1;
}

static bool holds(struct window *window, uint32_t count, uint64_t period_ns, uint32_t burst,
                  const struct said *of)
{
    const struct window_law law = {period_ns, count, burst, true, 0};
    return window_admits(window, &law, of->at_ns, world.now_ns);
}

static unsigned count_calls(struct address *address)
{
    unsigned n = 0;
    for (unsigned i = 0; i < address->n_calls; i++)
        if (!server_is_read(&address->calls[i]))
            address->calls[n++] = address->calls[i];
    address->n_calls = n;
    if (n < sizeof address->calls / sizeof address->calls[0])
        address->calls[address->n_calls++] = server_answering();
    return n + 1;
}

static void look_at_larges(struct address *address)
{
    uint64_t first = address->n_larges > LARGE_KEPT ? address->n_larges - LARGE_KEPT : 0;
    for (uint64_t i = first; i < address->n_larges; i++) {
        struct large_reply *large = &address->larges[i % LARGE_KEPT];
        if (large->seen_ns == 0 && server_is_read_whole(&large->answer, large->size))
            large->seen_ns = world.now_ns;
    }
}

static void look_at_answers(void)
{
    for (unsigned i = 0; i < ADDRESSES; i++)
        look_at_larges(&addresses[i]);
}

/*
 * The time at which the debt of all bytes read by weir before `of` was sent is paid. Each reply is
 * charged at the earliest possible time.
 */
static uint64_t debt_until(const struct address *address, const struct said *of)
{
    uint64_t until_ns = 0;
    uint64_t first = address->n_larges > LARGE_KEPT ? address->n_larges - LARGE_KEPT : 0;
    for (uint64_t i = first; i < address->n_larges; i++) {
        const struct large_reply *large = &address->larges[i % LARGE_KEPT];
        if (large->seen_ns == 0 || large->seen_ns > of->at_ns)
            continue;
        until_ns = (until_ns > large->carried_ns ? until_ns : large->carried_ns) +
                   large->size * RATE_BYTES_NS;
    }
    return until_ns;
}

static void judge_large(struct address *address, const struct said *of)
{
    look_at_larges(address);
    if (debt_until(address, of) >
        world.now_ns + funnels() * BURST_BYTES * RATE_BYTES_NS + CLOCKS_NS)
        complain(LAW_BYTES, of);
    answered = &address->larges[address->n_larges++ % LARGE_KEPT];
    *answered = (struct large_reply){server_answering(), 0, world.now_ns, 0};
}

void aborts_answered(uint64_t n)
{
    if (answered != NULL)
        answered->size = n;
    answered = NULL;
}

/*
 * Returns the request that the word names. NULL: no request of these clients, or a request that is
 * too old.
 */
static const struct said *said_in(struct slice word)
{
    char text[32] = "";
    uint64_t serial = 0;
    if (word.len < 4 || word.len >= sizeof text || memcmp(word.at, "ab:", 3) != 0)
        return NULL;
    memcpy(text, word.at + 3, word.len - 3);
    serial = strtoull(text, NULL, 10);
    return serial > 0 && serial + SERIALS > aborts.serial ? &said[serial % SERIALS] : NULL;
}

void aborts_carried_out(const struct slice *argv, size_t argc)
{
    const struct said *of = argc > 1 ? said_in(argv[1]) : NULL;
    if (of == NULL || run.phase != RUN_ACTS)
        return;
    struct address *address = &addresses[of->address];
    if (of->words == SAYS_AUTH || of->words == SAYS_HELLO_AUTH) {
        if (!holds(&address->logins, 5 * funnels(), 60 * S, 5 * funnels(), of))
            complain(LAW_LOGINS, of);
        return;
    }
    if (!holds(&address->commands, 100, S, 10, of))
        complain(LAW_COMMANDS, of);
    if (of->words != SAYS_OFF && count_calls(address) > IN_FLIGHT * funnels())
        complain(LAW_CALLS, of);
    if (of->words == SAYS_LARGE)
        judge_large(address, of);
}

/* ---- start and end ---- */

void aborts_start(void)
{
    memset(addresses, 0, sizeof addresses);
    aborts = (struct aborts){.party = {.turn = act, .kind = "aborts"}};
    random_init(&aborts.chance, run.plan.seed, STREAM_ABORTS);
    for (unsigned i = 0; i < CONNS_MAX; i++)
        all[i] = (struct aborting){.party = {.turn = take_turn, .kind = "abort", .index = i},
                                   .bell.ring = on_bell};
    hangs_start();
    if (run.plan.has_aborts)
        plan_next();
}

void aborts_end(void)
{
    hangs_end();
    for (unsigned i = 0; i < CONNS_MAX; i++)
        if (all[i].conn != NULL)
            leave(&all[i], true);
        else
            world_silence(&all[i].bell);
}

void aborts_stop(void)
{
    hangs_stop();
    aborts_end();
    for (unsigned i = 0; i < CONNS_MAX; i++)
        world_leave(&all[i].party);
    world_leave(&aborts.party);
}
