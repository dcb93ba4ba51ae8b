#include "upstream/login/auth_users.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_GENERATION 2 /* even; 0 means none */

void auth_users_init(struct auth_users *users, struct proven *proven)
{
    users->proven = proven;
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
            proven_put(users->proven, user->on_all);
            user->on_all = NULL;
            user->users = NULL;
        }
    users->n = 0;
}

/*
 * FNV-1a. A name is present only while a client uses the name, or a login with the name is being
 * checked. Filling a bucket therefore costs an attacker connections.
 */
static struct list *auth_users_bucket_of(const struct auth_users *users, struct slice name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)name.at[i]) * UINT32_C(16777619);
    return (struct list *)(uintptr_t)&users->buckets[(hash ^ hash >> 16) % AUTH_USERS_BUCKETS];
}

struct auth_user *auth_users_find(const struct auth_users *users, struct slice name)
{
    struct list *bucket = auth_users_bucket_of(users, name);
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
        list_push(auth_users_bucket_of(users, name), &user->in_bucket);
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
    if (user->users != NULL) {
        user->users->n--;
        proven_put(user->users->proven, user->on_all);
    }
    login_put(user->begun_by);
    for (unsigned i = 0; i < AUTH_PROVEN_MAX; i++)
        login_put(user->proven[i]);
    free(user);
}

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
        return; /* the close has ended the generation already */
    user->generation += 2;
    set_begun_by(user, NULL);
}

static bool auth_users_is_known(const struct auth_user *user, const struct login *login)
{
    for (unsigned i = 0; i < AUTH_PROVEN_MAX; i++)
        if (user->proven[i] != NULL && login_same(user->proven[i], login))
            return true;
    return false;
}

static void auth_users_tell_others(struct auth_user *user, const struct login *login, bool is_new)
{
    if (user->users == NULL)
        return;
    if (user->on_all == NULL)
        user->on_all = proven_get(user->users->proven, slice_of(user->name, user->name_len));
    if (user->on_all != NULL)
        proven_note(user->users->proven, user->on_all, login, is_new);
}

static void auth_users_add(struct auth_user *user, struct login *login)
{
    login_put(user->proven[AUTH_PROVEN_MAX - 1]);
    memmove(&user->proven[1], &user->proven[0], (AUTH_PROVEN_MAX - 1) * sizeof user->proven[0]);
    user->proven[0] = login_get(login);
}

void auth_user_note(struct auth_user *user, struct login *login)
{
    bool is_new = !auth_users_is_known(user, login);
    auth_users_tell_others(user, login, is_new);
    if (is_new)
        auth_users_add(user, login);
}

/*
 * Drops `refused` from the table of all workers. If this worker has no login left, takes over the
 * newest login of that table.
 */
static void auth_users_ask_others(struct auth_user *user, const struct login *refused)
{
    if (user->users == NULL || user->on_all == NULL)
        return;
    proven_drop(user->users->proven, user->on_all, refused);
    struct login *other =
        user->proven[0] == NULL ? proven_copy(user->users->proven, user->on_all) : NULL;
    if (other != NULL)
        auth_users_add(user, other);
    login_put(other);
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
    auth_users_ask_others(user, login);
    return user->proven[0] != NULL;
}

void auth_proof_take(struct auth_proof *proof, struct auth_user *user)
{
    if (user != NULL) {
        user->holders++;
        user->n_proofs++;
    }
    auth_proof_drop(proof);
    *proof = (struct auth_proof){0};
    if (user != NULL)
        *proof = (struct auth_proof){user, user->generation,
                                     user->users != NULL ? user->users->n_logins : 0};
}

void auth_proof_copy(struct auth_proof *proof, const struct auth_proof *from)
{
    const struct auth_proof copy = *from;
    auth_proof_take(proof, from->user);
    *proof = copy;
}

void auth_proof_drop(struct auth_proof *proof)
{
    struct auth_user *user = proof->user;
    *proof = (struct auth_proof){0};
    if (user == NULL)
        return;
    user->n_proofs--;
    auth_user_put(user);
}

bool auth_proof_holds(struct auth_proof *proof, const struct auth_users *users,
                      const struct login *login)
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
