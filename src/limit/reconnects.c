#include "limit/reconnects.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

#define ROWS 4096
#define PROBES 8 /* rows in which an address may be */

struct row {
    uint64_t hash;
    uint64_t closed_ns; /* last close */
    uint32_t permits;   /* 0: the row is free */
};

struct reconnects {
    struct hash_key key;
    _Atomic uint64_t last_ns; /* last close of any address */
    pthread_mutex_t lock;     /* protects the rows */
    struct row rows[ROWS];
};

struct reconnects *reconnects_new(struct hash_key key)
{
    struct reconnects *reconnects = mem_zalloc(1, sizeof *reconnects);
    reconnects->key = key;
    pthread_mutex_init(&reconnects->lock, NULL);
    return reconnects;
}

void reconnects_free(struct reconnects *reconnects)
{
    pthread_mutex_destroy(&reconnects->lock);
    free(reconnects);
}

static uint64_t reconnects_hash_of(const struct reconnects *reconnects, const struct ip *ip)
{
    return hash_bytes(reconnects->key, slice_of((const char *)ip->bytes, sizeof ip->bytes));
}

/* The row of the address, or the row that is given up for the address. */
static struct row *reconnects_find_row(struct reconnects *reconnects, uint64_t hash)
{
    struct row *best = &reconnects->rows[hash % ROWS];
    for (unsigned i = 0; i < PROBES; i++) {
        struct row *row = &reconnects->rows[(hash + i) % ROWS];
        if (row->permits > 0 && row->hash == hash)
            return row;
        if (best->permits > 0 && (row->permits == 0 || row->closed_ns < best->closed_ns))
            best = row;
    }
    return best;
}

void reconnects_note(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns)
{
    if (ip->family == 0)
        return;
    uint64_t hash = reconnects_hash_of(reconnects, ip);
    pthread_mutex_lock(&reconnects->lock);
    struct row *row = reconnects_find_row(reconnects, hash);
    uint32_t permits = row->hash == hash ? row->permits : 0;
    *row = (struct row){.hash = hash, .closed_ns = now_ns, .permits = permits + 1};
    pthread_mutex_unlock(&reconnects->lock);
    atomic_store_explicit(&reconnects->last_ns, now_ns, memory_order_release);
}

/*
 * True if Redis was found away after the connection was closed, or at most RECONNECTS_SLACK_NS
 * before.
 */
static bool is_outage(const struct row *row, uint64_t away_ns)
{
    return away_ns != 0 && row->closed_ns <= away_ns + RECONNECTS_SLACK_NS;
}

bool reconnects_take(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns,
                     uint64_t within_ns, uint64_t away_ns)
{
    uint64_t last_ns = atomic_load_explicit(&reconnects->last_ns, memory_order_acquire);
    if (ip->family == 0 || last_ns == 0 || now_ns > last_ns + within_ns)
        return false;
    uint64_t hash = reconnects_hash_of(reconnects, ip);
    pthread_mutex_lock(&reconnects->lock);
    struct row *row = reconnects_find_row(reconnects, hash);
    bool is_good = row->permits > 0 && row->hash == hash && now_ns <= row->closed_ns + within_ns &&
                   is_outage(row, away_ns);
    row->permits -= is_good;
    pthread_mutex_unlock(&reconnects->lock);
    return is_good;
}
