#include "tests/sim/trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/world.h"

#define SLOTS 256 /* connections, the newest; the first is for events without one */
#define KEPT 64   /* events of each connection, so that quiet connections are shown too */
#define TEXT 200  /* bytes of each event */

struct event {
    uint64_t number, step, now_ns;
    size_t len;
    uint8_t kind;
    unsigned conn;
    char text[TEXT];
};

static const char *const words[TRACE_COUNT] = {
#define KIND(id, word) [TRACE_##id] = (word),
    TRACE_KINDS(KIND)
#undef KIND
};

/* SLOTS arrays; events beyond n_of belong to an earlier run */
static struct event (*events)[KEPT];
static uint64_t n_of[SLOTS];
static uint64_t n_events;
#define DIGEST_OF_NOTHING UINT64_C(0x2545f4914f6cdd1d)
static uint64_t digest = DIGEST_OF_NOTHING;
static FILE *live;

/* Both halves of a product: each bit of either number affects all bits. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define ODD UINT64_C(0x9fb21c651e98df25)
#define OTHER_ODD UINT64_C(0xd6e8feb86659fd93)

static void mix(uint64_t number, uint64_t other)
{
    digest = fold(digest ^ number ^ ODD, digest + (other ^ OTHER_ODD));
}

static uint64_t word_at(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

/* Mixes long data in four independent sums. */
static size_t mix_long(const char *data, size_t n)
{
    uint64_t lanes[4] = {digest, digest ^ ODD, digest + OTHER_ODD, ~digest};
    size_t at = 0;
    for (; n - at >= 64; at += 64)
        for (size_t i = 0; i < 4; i++)
            lanes[i] = fold(lanes[i] ^ word_at(data + at + 16 * i),
                            word_at(data + at + 16 * i + 8) ^ ODD) ^
                       (lanes[i] << 23 | lanes[i] >> 41);
    mix(lanes[0], lanes[1]);
    mix(lanes[2], lanes[3]);
    return at;
}

static void mix_bytes(const char *data, size_t n)
{
    size_t at = n >= 128 ? mix_long(data, n) : 0;
    for (; n - at >= 16; at += 16)
        mix(word_at(data + at), word_at(data + at + 8));
    char last[16] = {0};
    if (n > at)
        memcpy(last, data + at, n - at);
    mix(word_at(last), word_at(last + 8));
    mix(n, 0);
}

static void print(FILE *to, const struct event *event)
{
    uint64_t us = (event->now_ns - SIM_START_NS) / 1000;
    fprintf(to, "%8" PRIu64 " %4" PRIu64 ".%06" PRIu64 " #%-4u %-13s", event->step, us / 1000000,
            us % 1000000, event->conn, words[event->kind]);
    for (size_t i = 0; i < event->len && i < TEXT; i++) {
        unsigned char c = (unsigned char)event->text[i];
        if (c == '\r')
            fputs("\\r", to);
        else if (c == '\n')
            fputs("\\n", to);
        else if (isprint(c))
            fputc(c, to);
        else
            fprintf(to, "\\x%02x", c);
    }
    if (event->len > TEXT)
        fprintf(to, " ... %zu bytes", event->len);
    fputc('\n', to);
}

void trace_open(FILE *to)
{
    live = to;
}

void trace_clear(void)
{
    if (events == NULL)
        events = mem_zalloc(SLOTS, sizeof *events);
    memset(n_of, 0, sizeof n_of);
    n_events = 0;
    digest = DIGEST_OF_NOTHING;
}

void trace_note(enum trace_kind kind, unsigned conn, const char *data, size_t n)
{
    unsigned slot = conn == 0 ? 0 : 1 + conn % (SLOTS - 1);
    struct event *event = &events[slot][n_of[slot]++ % KEPT];
    event->number = ++n_events;
    event->step = world.steps;
    event->now_ns = world.now_ns;
    event->kind = (uint8_t)kind;
    event->conn = conn;
    event->len = n;
    if (n > 0)
        memcpy(event->text, data, n < TEXT ? n : TEXT);
    mix(world.now_ns, (uint64_t)kind << 56 | conn);
    mix_bytes(data, n);
    if (live)
        print(live, event);
}

static int by_number(const void *a, const void *b)
{
    const struct event *const *one = a, *const *other = b;
    return (*one)->number < (*other)->number ? -1 : 1;
}

void trace_tell(FILE *to, unsigned most)
{
    static const struct event *told[SLOTS * KEPT];
    size_t n = 0;
    for (size_t slot = 0; slot < SLOTS; slot++)
        for (uint64_t i = 0; i < KEPT; i++) {
            const struct event *event = &events[slot][i];
            uint64_t age = (n_of[slot] - 1 - i) % KEPT; /* events in the slot since then */
            if (i < n_of[slot] && age < most)
                told[n++] = event;
        }
    qsort(told, n, sizeof told[0], by_number);
    for (size_t i = 0; i < n; i++)
        print(to, told[i]);
}

uint64_t trace_digest(void)
{
    return digest;
}
