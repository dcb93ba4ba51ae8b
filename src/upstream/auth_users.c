#include "upstream/auth_users.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_GENERATION 2 /* even; and 0 is of none */

void auth_users_init(struct auth_users *users)
{
    users->n = 0;
    users->n_logins = 0;
    for (unsigned i = 0; i < AUTH_USERS_BUCKETS; i++)
        list_init(&users->buckets[i]);
}

static struct auth_user *user_at(struct list *at)
{
    return container_of(at, struct auth_user, in_bucket);
}

void auth_users_fini(struct auth_users *users)
{
    for (unsigned i = 0; i < AUTH_USERS_BUCKETS; i++)
        while (!list_is_empty(&users->buckets[i])) {
            struct auth_user *user = user_at(users->buckets[i].next);
            list_take(&user->in_bucket);
            user->users = NULL;
        }
    users->n = 0;
}

/* FNV-1a. A name is here only while a client is, or its login is being asked about: whoever fills a bucket pays for it. */
static struct list *bucket_of(const struct auth_users *users, struct slice name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)name.at[i]) * UINT32_C(16777619);
    return (struct list *)(uintptr_t)&users->buckets[(hash ^ hash >> 16) % AUTH_USERS_BUCKETS];
}

struct auth_user *auth_users_find(const struct auth_users *users, struct slice name)
{
    struct list *bucket = bucket_of(users, name);
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct auth_user *user = user_at(at);
        if (slice_eq(slice_of(user->name, user->name_len), name))
            return user;
    }
    return NULL;
}

struct auth_user *auth_users_get(struct auth_users *users, struct slice name)
{
    struct auth_user *user = auth_users_find(users, name);
    if (user == NULL && (user = calloc(1, sizeof *user + name.len)) != NULL) {
        user->users = users;
        user->generation = FIRST_GENERATION;
        user->name_len = name.len;
        memcpy(user->name, name.at, name.len);
        list_push(bucket_of(users, name), &user->in_bucket);
        users->n++;
    }
    if (user != NULL)
        user->holders++;
    return user;
}

void auth_user_put(struct auth_user *user)
{
    if (user == NULL || --user->holders > 0)
        return;
    list_take(&user->in_bucket);
    if (user->users != NULL)
        user->users->n--;
    login_put(user->begun_by);
    for (unsigned i = 0; i < AUTH_PROVEN_MAX; i++)
        login_put(user->proven[i]);
    free(user);
}

/* ---- connections ---- */

static void set_begun_by(struct auth_user *user, struct login *login)
{
    login_get(login);
    login_put(user->begun_by);
    user->begun_by = login;
}

void auth_user_open(struct auth_user *user, struct login *login)
{
    if (user->n_open++ > 0)
        return;
    user->generation++;
    set_begun_by(user, login);
}

void auth_user_close(struct auth_user *user)
{
    if (--user->n_open > 0)
        return;
    user->generation++;
    set_begun_by(user, NULL);
}

void auth_user_kicked(struct auth_user *user)
{
    if (user->n_open == 0)
        return; /* its end was that of the generation */
    user->generation += 2;
    set_begun_by(user, NULL);
}

/* ---- passwords ---- */

void auth_user_note(struct auth_user *user, struct login *login)
{
    for (unsigned i = 0; i < AUTH_PROVEN_MAX; i++)
        if (user->proven[i] != NULL && login_same(user->proven[i], login))
            return;
    login_put(user->proven[AUTH_PROVEN_MAX - 1]);
    memmove(&user->proven[1], &user->proven[0], (AUTH_PROVEN_MAX - 1) * sizeof user->proven[0]);
    user->proven[0] = login_get(login);
}

bool auth_user_refuse(struct auth_user *user, const struct login *login)
{
    unsigned kept = 0;
    struct login *refused = NULL;
    for (unsigned i = 0; i < AUTH_PROVEN_MAX; i++) {
        struct login *proven = user->proven[i];
        user->proven[i] = NULL;
        if (proven != NULL && login_same(proven, login))
            refused = proven;
        else
            user->proven[kept++] = proven;
    }
    login_put(refused);
    return user->proven[0] != NULL;
}

/* ---- proofs ---- */

void proof_take(struct proof *proof, struct auth_user *user)
{
    if (user != NULL) {
        user->holders++;
        user->n_proofs++;
    }
    proof_drop(proof);
    *proof = (struct proof){0};
    if (user != NULL)
        *proof = (struct proof){user, user->generation, user->users != NULL ? user->users->n_logins : 0};
}

void proof_copy(struct proof *proof, const struct proof *from)
{
    const struct proof copy = *from;
    proof_take(proof, from->user);
    *proof = copy;
}

void proof_drop(struct proof *proof)
{
    struct auth_user *user = proof->user;
    *proof = (struct proof){0};
    if (user == NULL)
        return;
    user->n_proofs--;
    auth_user_put(user);
}

bool proof_holds(struct proof *proof, const struct auth_users *users, const struct login *login)
{
    const struct auth_user *user = proof->user;
    if (user == NULL || user->users != users || proof->generation == 0)
        return false;
    bool is_first = (proof->generation & 1) == 0 && user->generation == proof->generation + 1 &&
                    user->begun_by != NULL && login_same(user->begun_by, login);
    if (is_first)
        proof->generation++;
    return proof->generation == user->generation;
}
