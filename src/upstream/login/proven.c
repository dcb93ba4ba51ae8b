#include "upstream/login/proven.h"

#include <stdlib.h>
#include <string.h>

struct proven_user {
    struct list in_bucket;
    unsigned holders;     /* workers */
    struct login *newest; /* the table's alone; NULL: none is known */
    size_t name_len;
    char name[];
};

void proven_init(struct proven *proven)
{
    pthread_mutex_init(&proven->lock, NULL);
    for (unsigned i = 0; i < PROVEN_BUCKETS; i++)
        list_init(&proven->buckets[i]);
}

void proven_fini(struct proven *proven)
{
    pthread_mutex_destroy(&proven->lock);
}

static struct list *bucket_of(struct proven *proven, struct slice name)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)name.at[i]) * UINT32_C(16777619);
    return &proven->buckets[(hash ^ hash >> 16) % PROVEN_BUCKETS];
}

static struct proven_user *find(struct list *bucket, struct slice name)
{
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct proven_user *user = container_of(at, struct proven_user, in_bucket);
        if (slice_eq(slice_of(user->name, user->name_len), name))
            return user;
    }
    return NULL;
}

struct proven_user *proven_get(struct proven *proven, struct slice name)
{
    struct list *bucket = bucket_of(proven, name);
    pthread_mutex_lock(&proven->lock);
    struct proven_user *user = find(bucket, name);
    if (user == NULL && (user = calloc(1, sizeof *user + name.len)) != NULL) {
        user->name_len = name.len;
        memcpy(user->name, name.at, name.len);
        list_push(bucket, &user->in_bucket);
    }
    if (user != NULL)
        user->holders++;
    pthread_mutex_unlock(&proven->lock);
    return user;
}

void proven_put(struct proven *proven, struct proven_user *user)
{
    if (user == NULL)
        return;
    pthread_mutex_lock(&proven->lock);
    if (--user->holders == 0) {
        list_take(&user->in_bucket);
        login_put(user->newest); /* which overwrites it */
        free(user);
    }
    pthread_mutex_unlock(&proven->lock);
}

static struct login *copy_of(const struct login *login)
{
    return login_new(login_user(login), login_password(login));
}

void proven_note(struct proven *proven, struct proven_user *user, const struct login *login, bool is_new)
{
    pthread_mutex_lock(&proven->lock);
    if (user->newest == NULL || (is_new && !login_same(user->newest, login))) {
        login_put(user->newest);
        user->newest = copy_of(login);
    }
    pthread_mutex_unlock(&proven->lock);
}

void proven_drop(struct proven *proven, struct proven_user *user, const struct login *login)
{
    pthread_mutex_lock(&proven->lock);
    if (user->newest != NULL && login_same(user->newest, login)) {
        login_put(user->newest);
        user->newest = NULL;
    }
    pthread_mutex_unlock(&proven->lock);
}

struct login *proven_copy(struct proven *proven, const struct proven_user *user)
{
    pthread_mutex_lock(&proven->lock);
    struct login *copy = user->newest != NULL ? copy_of(user->newest) : NULL;
    pthread_mutex_unlock(&proven->lock);
    return copy;
}
