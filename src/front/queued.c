#include "front/queued.h"

#include <stdlib.h>
#include <string.h>

/* Each with its number in `members`: of the last MEMBERS_KEPT. */
struct tried {
    struct members logins, names, protocols; /* a protocol's number is itself */
    struct login *login[MEMBERS_KEPT];       /* counted */
    bool is_short[MEMBERS_KEPT];
    char *name[MEMBERS_KEPT]; /* heap */
};

/* NULL: out of memory. */
static struct tried *want_tried(struct queued *queued)
{
    if (queued->tried == NULL && (queued->tried = calloc(1, sizeof *queued->tried)) != NULL) {
        members_init(&queued->tried->logins);
        members_init(&queued->tried->names);
        members_init(&queued->tried->protocols);
    }
    return queued->tried;
}

static void drop_tried(struct queued *queued)
{
    for (size_t i = 0; queued->tried != NULL && i < MEMBERS_KEPT; i++) {
        login_put(queued->tried->login[i]);
        free(queued->tried->name[i]);
    }
    free(queued->tried);
    queued->tried = NULL;
}

void queued_begin(struct queued *queued)
{
    queued->n = 0;
    queued_end(queued);
}

void queued_end(struct queued *queued)
{
    queued->pause_ms = queued->n_silent = queued->heard_from = 0;
}

void queued_forget(struct queued *queued)
{
    login_put(queued->login);
    free(queued->name);
    free(queued->selects);
    queued->login = NULL;
    queued->name = NULL;
    queued->selects = NULL;
    drop_tried(queued);
    queued->protocol = 0;
    queued->is_short = queued->is_refused = queued->is_astray = false;
}

void queued_add_silent(struct queued *queued, bool is_heard)
{
    queued->n_silent++;
    if (queued->heard_from == 0 && is_heard)
        queued->heard_from = queued->n_silent;
}

void queued_pause(struct queued *queued, uint32_t ms)
{
    queued->pause_ms = ms;
}

void queued_go_astray(struct queued *queued)
{
    queued->is_astray = true;
}

/* What comes of it is told by what EXEC answers, at its place there. */
bool queued_select(struct queued *queued, uint32_t database)
{
    struct members **selects = &queued->selects;
    if (*selects == NULL && (*selects = malloc(sizeof **selects)) != NULL)
        members_init(*selects);
    if (*selects != NULL)
        members_choose(*selects, queued->n, database);
    return *selects != NULL;
}

static bool hold_name(struct queued *queued, struct slice name)
{
    char *copy = strndup(name.at, name.len);
    free(queued->name);
    queued->name = copy;
    return copy != NULL;
}

static void choose(const struct queued *queued, struct members *members, uint32_t number, bool is_hello)
{
    (is_hello ? members_choose_list : members_choose)(members, queued->n, number);
}

static bool rename_by(struct queued *queued, struct slice name, bool is_hello)
{
    struct tried *tried = want_tried(queued);
    if (tried == NULL || !hold_name(queued, name))
        return false;
    uint32_t place = tried->names.n % MEMBERS_KEPT;
    free(tried->name[place]);
    tried->name[place] = strndup(name.at, name.len);
    choose(queued, &tried->names, place, is_hello);
    return tried->name[place] != NULL;
}

bool queued_rename(struct queued *queued, struct slice name)
{
    return rename_by(queued, name, false);
}

/* What can be read of it Redis will do. */
bool queued_hello(struct queued *queued, const struct hello *hello)
{
    if (hello->n_wrong > 0)
        return true;
    struct tried *tried = want_tried(queued);
    if (tried == NULL)
        return false;
    if (hello->protocol != 0) {
        queued->protocol = hello->protocol;
        choose(queued, &tried->protocols, hello->protocol, true);
    }
    return !hello->has_name || rename_by(queued, hello->name, true);
}

bool queued_log_in(struct queued *queued, const struct hello *hello)
{
    if (queued->login != NULL && queued_has_hello(queued))
        queued_go_astray(queued); /* whose HELLO held? */
    login_put(queued->login);
    queued->login = login_new(hello->user, hello->password);
    queued->is_short = hello->is_short;
    struct tried *tried = want_tried(queued);
    if (queued->login == NULL || tried == NULL)
        return false;
    uint32_t place = tried->logins.n % MEMBERS_KEPT;
    login_put(tried->login[place]);
    tried->login[place] = login_get(queued->login);
    tried->is_short[place] = hello->is_short;
    choose(queued, &tried->logins, place, !hello->is_auth);
    return true;
}

/* ---- what EXEC answers ---- */

void queued_feed(struct queued *queued, const char *data, size_t n)
{
    struct tried *tried = queued->tried;
    if (queued->selects != NULL)
        members_feed(queued->selects, data, n);
    if (tried == NULL)
        return;
    members_feed(&tried->logins, data, n);
    members_feed(&tried->names, data, n);
    members_feed(&tried->protocols, data, n);
}

static void settle_login(struct queued *queued, enum members_answer answer, uint32_t place)
{
    queued->is_refused = answer == MEMBERS_NONE;
    if (answer != MEMBERS_ONE)
        return;
    login_put(queued->login);
    queued->login = login_get(queued->tried->login[place]);
    queued->is_short = queued->tried->is_short[place];
}

static void settle_name(struct queued *queued, enum members_answer answer, uint32_t place)
{
    free(queued->name);
    queued->name = NULL;
    if (answer != MEMBERS_ONE)
        return;
    queued->name = queued->tried->name[place];
    queued->tried->name[place] = NULL;
}

/* False: it cannot be told, of something that was tried. */
static bool ask(const struct queued *queued, const struct members *members, enum members_answer *answer,
                uint32_t *number)
{
    *answer = members->n > 0 ? members_last_ok(members, queued->n, number) : MEMBERS_NONE;
    return *answer != MEMBERS_UNKNOWN;
}

bool queued_settle(struct queued *queued, bool is_forgeable)
{
    enum members_answer login, name, protocol;
    uint32_t login_place, name_place, number;
    const struct tried *tried = queued->tried;
    if (tried == NULL)
        return true;
    if (!ask(queued, &tried->logins, &login, &login_place) || !ask(queued, &tried->names, &name, &name_place) ||
        !ask(queued, &tried->protocols, &protocol, &number))
        return false;
    if (!is_forgeable)
        settle_login(queued, login, login_place);
    settle_name(queued, name, name_place);
    queued->protocol = protocol == MEMBERS_ONE ? (uint8_t)number : 0;
    return true;
}
