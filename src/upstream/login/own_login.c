#include "upstream/login/own_login.h"

#include <stddef.h>

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

/* A login that is neither is older than both: the ones there are now have not been tried. */
bool own_login_refuse(struct own_login *own, const struct login *login, uint64_t now_ns, uint64_t again_ns)
{
    own->is_newest_refused |= login == own->newest;
    own->is_before_refused |= login == own->before;
    bool has_other = !own->is_newest_refused || (own->before != NULL && !own->is_before_refused);
    if (!has_other)
        own_login_accept(own); /* they are tried anew the next time */
    own->newest_ns = has_other && own->is_newest_refused ? now_ns + again_ns : 0;
    return has_other;
}

void own_login_accept(struct own_login *own)
{
    own->is_newest_refused = own->is_before_refused = false;
}
