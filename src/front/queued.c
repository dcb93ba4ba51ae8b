#include "front/queued.h"

#include <stdlib.h>
#include <string.h>

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
    queued->protocol = 0;
    queued->is_short = queued->is_astray = false;
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

bool queued_rename(struct queued *queued, struct slice name)
{
    free(queued->name);
    queued->name = strndup(name.at, name.len);
    return queued->name != NULL;
}

/* What can be read of it Redis will do. */
bool queued_hello(struct queued *queued, const struct hello *hello)
{
    if (hello->n_wrong > 0)
        return true;
    if (hello->protocol != 0)
        queued->protocol = hello->protocol;
    return !hello->has_name || queued_rename(queued, hello->name);
}

bool queued_log_in(struct queued *queued, const struct hello *hello)
{
    if (queued->login != NULL && queued_has_hello(queued))
        queued_go_astray(queued); /* whose HELLO held? */
    login_put(queued->login);
    queued->login = login_new(hello->user, hello->password);
    queued->is_short = hello->is_short;
    return queued->login != NULL;
}
