/* A ring of the newest `n` entries. The entry with number `id` is at id % room. */
#include "limit/figures/slowlog.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

struct slowlog {
    pthread_mutex_t lock;
    uint64_t next_id;
    struct slow_entry *entries; /* NULL: no room */
    size_t room;
    size_t n;
};

struct slowlog *slowlog_new(void)
{
    struct slowlog *slowlog = mem_zalloc(1, sizeof *slowlog);
    pthread_mutex_init(&slowlog->lock, NULL);
    return slowlog;
}

void slowlog_free(struct slowlog *slowlog)
{
    if (slowlog == NULL)
        return;
    pthread_mutex_destroy(&slowlog->lock);
    free(slowlog->entries);
    free(slowlog);
}

/* The i-th newest entry; 0 is the newest. */
static struct slow_entry *slowlog_entry_at(const struct slowlog *slowlog, size_t i)
{
    return &slowlog->entries[(slowlog->next_id - 1 - i) % slowlog->room];
}

static void resize(struct slowlog *slowlog, size_t room)
{
    struct slow_entry *entries = room > 0 ? calloc(room, sizeof *entries) : NULL;
    if (room > 0 && entries == NULL)
        return;
    size_t n = slowlog->n < room ? slowlog->n : room;
    for (size_t i = 0; i < n; i++)
        entries[(slowlog->next_id - 1 - i) % room] = *slowlog_entry_at(slowlog, i);
    free(slowlog->entries);
    slowlog->entries = entries;
    slowlog->room = room;
    slowlog->n = n;
}

void slowlog_keep(struct slowlog *slowlog, size_t most)
{
    size_t room = most < SLOWLOG_MOST ? most : SLOWLOG_MOST;
    pthread_mutex_lock(&slowlog->lock);
    if (slowlog->room != room)
        resize(slowlog, room);
    pthread_mutex_unlock(&slowlog->lock);
}

void slowlog_add(struct slowlog *slowlog, const struct slow_entry *entry)
{
    pthread_mutex_lock(&slowlog->lock);
    uint64_t id = slowlog->next_id++;
    if (slowlog->room > 0) {
        struct slow_entry *kept = &slowlog->entries[id % slowlog->room];
        *kept = *entry;
        kept->id = id;
        slowlog->n += slowlog->n < slowlog->room;
    }
    pthread_mutex_unlock(&slowlog->lock);
}

size_t slowlog_last(struct slowlog *slowlog, struct slow_entry *out, size_t max)
{
    pthread_mutex_lock(&slowlog->lock);
    size_t n = slowlog->n < max ? slowlog->n : max;
    for (size_t i = 0; i < n; i++)
        out[i] = *slowlog_entry_at(slowlog, i);
    pthread_mutex_unlock(&slowlog->lock);
    return n;
}

size_t slowlog_length(struct slowlog *slowlog)
{
    pthread_mutex_lock(&slowlog->lock);
    size_t n = slowlog->n;
    pthread_mutex_unlock(&slowlog->lock);
    return n;
}

void slowlog_reset(struct slowlog *slowlog)
{
    pthread_mutex_lock(&slowlog->lock);
    slowlog->n = 0;
    pthread_mutex_unlock(&slowlog->lock);
}
