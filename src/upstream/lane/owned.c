#include "upstream/lane/owned.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_ROOM 64 /* a power of two, like all later sizes */

struct owner {
    int64_t id; /* 0: a free entry */
    uint64_t login_hash;
    bool is_pointed_at;
};

/*
 * Open addressing: the table is at most half full while memory is available, and is never full. A
 * removal moves later entries up.
 */
struct owned {
    pthread_mutex_t lock;
    struct hash_key key;
    struct owner *entries;
    size_t room;
    size_t n;
};

struct owned *owned_new(void)
{
    struct owned *owned = mem_zalloc(1, sizeof *owned);
    pthread_mutex_init(&owned->lock, NULL);
    if (getrandom(&owned->key, sizeof owned->key, 0) != (ssize_t)sizeof owned->key)
        abort();
    owned->room = FIRST_ROOM;
    owned->entries = mem_zalloc(owned->room, sizeof *owned->entries);
    return owned;
}

void owned_free(struct owned *owned)
{
    if (owned == NULL)
        return;
    pthread_mutex_destroy(&owned->lock);
    free(owned->entries);
    free(owned);
}

/* The user of a login as a number: 64 bits of a keyed hash. */
static uint64_t login_hash_of(const struct owned *owned, const struct login *login)
{
    if (login == NULL)
        return 0;
    if (login->is_weirs)
        return 1; /* weir's user, whatever its present password */
    return hash_bytes(owned->key, login_user(login)) | 2;
}

static size_t owned_first_slot(const struct owned *owned, int64_t id)
{
    return (size_t)((uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (owned->room - 1);
}

/* Returns the entry of this id, or the free entry for this id. */
static struct owner *owned_find(const struct owned *owned, int64_t id)
{
    size_t at = owned_first_slot(owned, id);
    while (owned->entries[at].id != 0 && owned->entries[at].id != id)
        at = (at + 1) & (owned->room - 1);
    return &owned->entries[at];
}

static void owned_grow(struct owned *owned)
{
    struct owner *old = owned->entries;
    struct owner *entries = calloc(2 * owned->room, sizeof *entries);
    size_t n = owned->room;
    if (entries == NULL)
        return; /* the table stays as it is, and searches take longer */
    owned->room *= 2;
    owned->entries = entries;
    for (size_t i = 0; i < n; i++)
        if (old[i].id != 0)
            *owned_find(owned, old[i].id) = old[i];
    free(old);
}

/* Re-insert the entries behind a freed entry: these entries could not be found otherwise. */
static void close_up(struct owned *owned, size_t at)
{
    for (at = (at + 1) & (owned->room - 1); owned->entries[at].id != 0;
         at = (at + 1) & (owned->room - 1)) {
        struct owner moved = owned->entries[at];
        owned->entries[at].id = 0;
        *owned_find(owned, moved.id) = moved;
    }
}

void owned_enter(struct owned *owned, int64_t id, const struct login *login)
{
    pthread_mutex_lock(&owned->lock);
    if (2 * (owned->n + 1) > owned->room)
        owned_grow(owned);
    struct owner *owner = owned_find(owned, id);
    if (owner->id == id || owned->n + 1 < owned->room) {
        owned->n += owner->id == 0;
        *owner = (struct owner){id, login_hash_of(owned, login),
                                owner->id == id && owner->is_pointed_at};
    }
    pthread_mutex_unlock(&owned->lock);
}

bool owned_leave(struct owned *owned, int64_t id)
{
    pthread_mutex_lock(&owned->lock);
    struct owner *owner = owned_find(owned, id);
    bool was_pointed_at = owner->id != 0 && owner->is_pointed_at;
    if (owner->id != 0) {
        owner->id = 0;
        owned->n--;
        close_up(owned, (size_t)(owner - owned->entries));
    }
    pthread_mutex_unlock(&owned->lock);
    return was_pointed_at;
}

bool owned_point(struct owned *owned, int64_t id, const struct login *login)
{
    pthread_mutex_lock(&owned->lock);
    struct owner *owner = id > 0 ? owned_find(owned, id) : NULL;
    bool may = owner != NULL && owner->id != 0 && owner->login_hash == login_hash_of(owned, login);
    if (may)
        owner->is_pointed_at = true;
    pthread_mutex_unlock(&owned->lock);
    return may;
}

bool owned_is_pointed_at(struct owned *owned, int64_t id)
{
    pthread_mutex_lock(&owned->lock);
    const struct owner *owner = owned_find(owned, id);
    bool is = owner->id != 0 && owner->is_pointed_at;
    pthread_mutex_unlock(&owned->lock);
    return is;
}
