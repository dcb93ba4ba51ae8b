#include "run/topology/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct mastership_server server_of(const struct member *member)
{
    struct finder_word word = finder_word(member->finder);
    enum mastership_reach reach = word.is_lost ? REACH_LOST : REACH_OK;
    return (struct mastership_server){
        .key = member->key,
        .reach = member->is_settled ? reach : REACH_UNTRIED,
        .role = word.role,
        .said_ns = word.said_ns,
    };
}

static const char *word_of(const struct mastership_server *server, const struct member *member)
{
    static const char *const words[] = {
        [ROLE_UNKNOWN] = "does not say what it is", [ROLE_MASTER] = "is a master", [ROLE_REPLICA] = "is a replica"};
    if (server->reach == REACH_OK && server->role == ROLE_UNKNOWN && finder_word(member->finder).is_mute)
        return "does not say what it is, as weir has no login there";
    return server->reach != REACH_OK ? "is away" : words[server->role];
}

/* "10.0.0.1:6379 is a replica, 10.0.0.2:6379 is away" */
static size_t print_words(const struct mastership_view *view, const struct members *members, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_servers && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%.100s %s", i > 0 ? ", " : "", view->servers[i].key,
                              word_of(&view->servers[i], members->all[i]));
    return n;
}

/* What the sentinels' part in it is, where they have one. */
static const char *sentinels_part(enum mastership_why why)
{
    switch (why) {
    case MASTERSHIP_NO_CLAIM:
        return "no sentinel names one";
    case MASTERSHIP_DISAGREE:
        return "the sentinels disagree";
    case MASTERSHIP_AWAITED:
        return "the server that the sentinels name has not said that it is";
    case MASTERSHIP_IS_REPLICA:
        return "the server that the sentinels name says that it is a replica";
    default:
        return "";
    }
}

static void explain(struct choice *choice, const struct mastership_view *view, const struct members *members)
{
    const char *part = sentinels_part(choice->why);
    choice->text[0] = '\0';
    if (choice->home != NULL)
        return;
    size_t n = (size_t)snprintf(choice->text, sizeof choice->text, "%s%s", part,
                                part[0] != '\0' && view->n_servers > 0 ? ": " : "");
    (void)print_words(view, members, choice->text + n, sizeof choice->text - n);
}

void choice_make(struct choice *choice, const struct members *members, const struct choice_claims *claims,
                 uint64_t now_ns)
{
    struct mastership_server *servers = mem_zalloc(members->n, sizeof *servers);
    for (size_t i = 0; i < members->n; i++)
        servers[i] = server_of(members->all[i]);
    const struct mastership_view view = {
        .form = choice->form,
        .servers = servers,
        .n_servers = members->n,
        .claims = claims->claims,
        .n_claims = claims->n,
        .n_sentinels = claims->n_sentinels,
        .before = {choice->named[0] != '\0' ? choice->named : NULL, choice->epoch, choice->changed_ns},
        .now_ns = now_ns,
    };
    struct mastership_choice made = mastership_choose(&view);
    choice->home = members_find(members, made.home);
    choice->asked = members_find(members, made.ask);
    if (made.named != choice->named)
        snprintf(choice->named, sizeof choice->named, "%s", made.named != NULL ? made.named : "");
    choice->epoch = made.epoch;
    choice->changed_ns = made.changed_ns;
    choice->again_ns = made.again_ns;
    choice->pace = made.pace;
    choice->why = made.why;
    explain(choice, &view, members);
    free(servers);
}
