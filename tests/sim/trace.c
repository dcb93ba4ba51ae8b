#include "tests/sim/trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

#define SLOTS 256 /* of connections, the newest; the first is of what is none's */
#define KEPT 64   /* events of each: whoever says little is told of too */
#define TEXT 200  /* bytes of each */

struct event {
    uint64_t number, step, now_ns; /* from 1; 0: none */
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

static struct event events[SLOTS][KEPT];
static uint64_t n_of[SLOTS];
static uint64_t n_events;
#define DIGEST_OF_NOTHING UINT64_C(0x2545f4914f6cdd1d)
static uint64_t digest = DIGEST_OF_NOTHING;
static FILE *live;

static void mix(uint64_t number)
{
    digest = (digest ^ number) * UINT64_C(0x9fb21c651e98df25);
    digest ^= digest >> 32;
}

static void mix_bytes(const char *data, size_t n)
{
    for (; n >= 8; data += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        mix(word);
    }
    uint64_t rest = n;
    for (size_t i = 0; i < n; i++)
        rest = rest << 8 | (unsigned char)data[i];
    mix(rest);
}

static void print(FILE *to, const struct event *event)
{
    uint64_t us = (event->now_ns - SIM_START_NS) / 1000;
    fprintf(to, "%8" PRIu64 " %4" PRIu64 ".%06" PRIu64 " #%-4u %-13s", event->step, us / 1000000, us % 1000000,
            event->conn, words[event->kind]);
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
    mix(world.now_ns ^ (uint64_t)kind << 56 ^ (uint64_t)conn << 32);
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
            uint64_t age = (n_of[slot] - 1 - i) % KEPT; /* how many of its slot have come since */
            if (event->number > 0 && age < most)
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
