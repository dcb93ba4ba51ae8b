#include "upstream/login/login.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"

struct login *login_new(struct slice user, struct slice password)
{
    struct login *login = malloc(sizeof *login + user.len + password.len);
    if (login == NULL)
        return NULL;
    login->holders = 1;
    login->is_weirs = false;
    login->user_len = user.len;
    login->password_len = password.len;
    memcpy(login->text, user.at, user.len);
    memcpy(login->text + user.len, password.at, password.len);
    return login;
}

struct login *login_get(struct login *login)
{
    if (login != NULL)
        login->holders++;
    return login;
}

void login_put(struct login *login)
{
    if (login == NULL || --login->holders > 0)
        return;
    explicit_bzero(login->text, login->user_len + login->password_len);
    free(login);
}

size_t login_room(const struct login *login)
{
    return login->user_len + login->password_len + sizeof "AUTH" + 4 * EMIT_HEADER_MAX + 6;
}

size_t login_emit(const struct login *login, struct slice auth, bool is_short, char *out)
{
    const struct slice words[] = {auth, login_user(login), login_password(login)};
    const struct slice without_user[] = {auth, login_password(login)};
    return is_short ? emit_array(out, without_user, 2) : emit_array(out, words, 3);
}

bool login_same_user(const struct login *a, const struct login *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    if (a->is_weirs || b->is_weirs)
        return a->is_weirs == b->is_weirs;
    return slice_eq(login_user(a), login_user(b));
}

bool login_same(const struct login *a, const struct login *b)
{
    if (a == b || a == NULL || b == NULL || a->is_weirs || b->is_weirs)
        return login_same_user(a, b);
    return login_same_user(a, b) && slice_eq(login_password(a), login_password(b));
}

static struct login *login_of(struct slice user, struct slice password)
{
    struct login *login = login_new(user, password);
    if (login != NULL)
        login->is_weirs = true;
    return login;
}

bool own_login_set(struct own_login *own, const struct own_login_words *words)
{
    struct login *first = login_of(words->user, words->newest);
    struct login *second = words->before.len > 0 ? login_of(words->user, words->before) : NULL;
    if (first == NULL || (words->before.len > 0 && second == NULL)) {
        login_put(first);
        login_put(second);
        return false;
    }
    own_login_fini(own);
    *own = (struct own_login){.newest = first, .before = second, .number = words->number};
    return true;
}

void own_login_fini(struct own_login *own)
{
    login_put(own->newest);
    login_put(own->before);
    *own = (struct own_login){0};
}

struct login *own_login_now(struct own_login *own, uint64_t now_ns)
{
    if (now_ns >= own->newest_ns)
        own->newest_ns = 0;
    return own->newest_ns != 0 ? own->before : own->newest;
}

/*
 * A refused login other than `newest` and `before` is older: the two present logins have not been
 * tried.
 */
bool own_login_refuse(struct own_login *own, const struct login *login, uint64_t now_ns,
                      uint64_t again_ns)
{
    own->is_newest_refused |= login == own->newest;
    own->is_before_refused |= login == own->before;
    bool has_other = !own->is_newest_refused || (own->before != NULL && !own->is_before_refused);
    if (!has_other)
        own_login_accept(own); /* the next attempt tries both logins again */
    own->newest_ns = has_other && own->is_newest_refused ? now_ns + again_ns : 0;
    return has_other;
}

void own_login_accept(struct own_login *own)
{
    own->is_newest_refused = own->is_before_refused = false;
}

struct proven_user {
    struct list in_bucket;
    unsigned holders;     /* number of workers that refer to the user */
    struct login *newest; /* referenced by the table only; NULL: no login is known */
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

static struct list *login_bucket_of(struct proven *proven, struct slice name)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)name.at[i]) * UINT32_C(16777619);
    return &proven->buckets[(hash ^ hash >> 16) % PROVEN_BUCKETS];
}

static struct proven_user *login_find(struct list *bucket, struct slice name)
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
    struct list *bucket = login_bucket_of(proven, name);
    pthread_mutex_lock(&proven->lock);
    struct proven_user *user = login_find(bucket, name);
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
        login_put(user->newest); /* wipes the password */
        free(user);
    }
    pthread_mutex_unlock(&proven->lock);
}

static struct login *copy_of(const struct login *login)
{
    return login_new(login_user(login), login_password(login));
}

void proven_note(struct proven *proven, struct proven_user *user, const struct login *login,
                 bool is_new)
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
