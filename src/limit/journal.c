/*
 * A ring of events: the one with number `id` is at id % JOURNAL_EVENTS until it is overwritten.
 */
#include "limit/journal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct journal {
    pthread_mutex_t lock;
    uint64_t next_id;
    struct journal_event events[JOURNAL_EVENTS];
};

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

void journal_add(struct journal *journal, uint64_t unix_ms, const char *kind, const char *format, ...)
{
    struct journal_event event = {.unix_ms = unix_ms};
    va_list args;
    snprintf(event.kind, sizeof event.kind, "%s", kind);
    va_start(args, format);
    vsnprintf(event.text, sizeof event.text, format, args);
    va_end(args);

    pthread_mutex_lock(&journal->lock);
    event.id = journal->next_id++;
    journal->events[event.id % JOURNAL_EVENTS] = event;
    pthread_mutex_unlock(&journal->lock);
}

size_t journal_last(struct journal *journal, struct journal_event *out, size_t max)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t n = journal->next_id < JOURNAL_EVENTS ? journal->next_id : JOURNAL_EVENTS;
    if (n > max)
        n = max;
    for (uint64_t i = 0; i < n; i++)
        out[i] = journal->events[(journal->next_id - 1 - i) % JOURNAL_EVENTS];
    pthread_mutex_unlock(&journal->lock);
    return n;
}
