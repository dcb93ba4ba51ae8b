/*
 * The table has one part for each of three kinds of events. The rows of a part are in no particular
 * order. The newest event has the greatest id. A new event replaces the oldest event of its part.
 */
#include "limit/figures/journal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define LINE_ROOM 1024

enum part { PART_OF_ORDERS, PART_OF_LIMITS, PART_OF_WEIR, PARTS };

struct row {
    uint64_t about;             /* a hash of the kind and of `about` */
    struct journal_event event; /* count 0: free row */
};

struct journal {
    pthread_mutex_t lock;
    uint64_t next_id;
    struct row rows[PARTS][JOURNAL_ROOM];
};

_Static_assert(PARTS *JOURNAL_ROOM == JOURNAL_EVENTS, "each part has its room");

/* The kinds that are not admin commands. */
static const struct {
    const char *kind;
    enum part part;
} parts[] = {
    {"refused", PART_OF_LIMITS}, {"delayed", PART_OF_LIMITS}, {"shadowed", PART_OF_LIMITS},
    {"upstream", PART_OF_WEIR},  {"memory", PART_OF_WEIR},    {"subjects", PART_OF_WEIR},
    {"drain", PART_OF_WEIR},     {"upgrade", PART_OF_WEIR},
};

static enum part journal_part_of(const char *kind)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(kind, parts[i].kind) == 0)
            return parts[i].part;
    return PART_OF_ORDERS;
}

struct journal *journal_new(void)
{
    struct journal *journal = mem_zalloc(1, sizeof *journal);
    pthread_mutex_init(&journal->lock, NULL);
    return journal;
}

void journal_free(struct journal *journal)
{
    if (journal == NULL)
        return;
    pthread_mutex_destroy(&journal->lock);
    free(journal);
}

/* FNV-1a. A collision merges two events, and costs the operator one line. */
static uint64_t hash(uint64_t sum, const char *text)
{
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (sum ^ 0xff) * UINT64_C(0x100000001b3);
}

/* The row of that event; otherwise the row that the event should replace. */
static struct row *row_for(struct row *rows, uint64_t about)
{
    struct row *oldest = rows;
    for (struct row *row = rows; row < rows + JOURNAL_ROOM; row++) {
        if (row->event.count > 0 && row->about == about)
            return row;
        bool is_older = row->event.count == 0 || row->event.id < oldest->event.id;
        if (oldest->event.count > 0 && is_older)
            oldest = row;
    }
    return oldest;
}

static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

void journal_add_about(struct journal *journal, uint64_t unix_ms, const char *kind,
                       const char *about, const char *text)
{
    uint64_t key = hash(hash(UINT64_C(0xcbf29ce484222325), kind), about);
    struct journal_event event = {.unix_ms = unix_ms, .first_unix_ms = unix_ms, .count = 1};
    snprintf(event.kind, sizeof event.kind, "%s", kind);
    snprintf(event.text, sizeof event.text, "%s", text);
    clean(event.text);

    pthread_mutex_lock(&journal->lock);
    struct row *row = row_for(journal->rows[journal_part_of(kind)], key);
    if (row->event.count > 0 && row->about == key) {
        event.first_unix_ms = row->event.first_unix_ms;
        event.count += row->event.count;
    }
    event.id = journal->next_id++;
    *row = (struct row){key, event};
    pthread_mutex_unlock(&journal->lock);
}

void journal_add(struct journal *journal, uint64_t unix_ms, const char *kind, const char *format,
                 ...)
{
    char text[JOURNAL_TEXT_MAX + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    journal_add_about(journal, unix_ms, kind, text, text);
}

static int newest_first(const void *one, const void *other)
{
    const struct journal_event *a = *(const struct journal_event *const *)one;
    const struct journal_event *b = *(const struct journal_event *const *)other;
    return a->id > b->id ? -1 : a->id < b->id;
}

void journal_log(struct journal *journal, enum log_level level, const char *kind,
                 const char *format, ...)
{
    char text[LINE_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line(level, "%s", text);
    journal_add(journal, clock_unix_ms(), kind, "%s", text);
}

size_t journal_last(struct journal *journal, struct journal_event *out, size_t max)
{
    const struct journal_event *events[JOURNAL_EVENTS];
    size_t n = 0;
    pthread_mutex_lock(&journal->lock);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t i = 0; i < JOURNAL_ROOM; i++)
            if (journal->rows[part][i].event.count > 0)
                events[n++] = &journal->rows[part][i].event;
    qsort(events, n, sizeof events[0], newest_first);
    n = n < max ? n : max;
    for (size_t i = 0; i < n; i++)
        out[i] = *events[i];
    pthread_mutex_unlock(&journal->lock);
    return n;
}
