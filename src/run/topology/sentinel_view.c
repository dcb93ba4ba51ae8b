#include "run/topology/sentinel_view.h"

#include <stdio.h>
#include <string.h>

static void take_claim(struct sentinel_view *view, size_t i)
{
    const struct sentinels_claim *told = &view->told[i];
    if (told->master != NULL)
        address_print(told->master, view->keys[i], sizeof view->keys[i]);
    view->claims[i] = (struct mastership_claim){
        .sentinel = told->sentinel,
        .server = told->master != NULL ? view->keys[i] : NULL,
        .epoch = told->epoch,
        .since_ns = told->since_ns,
        .age = told->age,
    };
}

void sentinel_view_look(struct sentinel_view *view, const struct sentinels *sentinels)
{
    view->sentinels = sentinels;
    view->n = sentinels_claims(sentinels, view->told);
    view->n_replicas = sentinels_replicas(sentinels, view->replicas);
    for (size_t i = 0; i < view->n; i++)
        take_claim(view, i);
}

struct choice_claims sentinel_view_claims(const struct sentinel_view *view)
{
    return (struct choice_claims){view->claims, view->n, sentinels_count(view->sentinels)};
}

static void admit(struct members *members, const struct address *address)
{
    char key[ADDRESS_TEXT];
    address_print(address, key, sizeof key);
    if (members_find(members, key) == NULL)
        (void)members_add(members, key, address);
}

void sentinel_view_admit(const struct sentinel_view *view, struct members *members)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->told[i].master != NULL && view->told[i].age == CLAIM_FRESH)
            admit(members, view->told[i].master);
    for (size_t i = 0; i < view->n_replicas; i++)
        admit(members, view->replicas[i]);
}

static bool is_told_of(const struct sentinel_view *view, const struct member *member)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->claims[i].server != NULL && strcmp(view->claims[i].server, member->key) == 0)
            return true;
    for (size_t i = 0; i < view->n_replicas; i++) {
        char key[ADDRESS_TEXT];
        address_print(view->replicas[i], key, sizeof key);
        if (strcmp(key, member->key) == 0)
            return true;
    }
    return false;
}

static bool is_any_fresh(const struct sentinel_view *view)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->claims[i].age == CLAIM_FRESH)
            return true;
    return false;
}

void sentinel_view_dismiss(const struct sentinel_view *view, struct members *members, const struct choice *choice)
{
    if (!is_any_fresh(view))
        return;
    for (size_t i = 0; i < members->n; i++) {
        struct member *member = members->all[i];
        bool is_chosen = member == choice->home || strcmp(member->key, choice->named) == 0;
        member->is_leaving = !is_chosen && !is_told_of(view, member);
    }
}

size_t sentinel_view_explain(const struct sentinel_view *view, char *out, size_t room)
{
    size_t n = 0;
    struct sentinels_row row;
    out[0] = '\0';
    for (size_t i = 0; sentinels_row(view->sentinels, i, &row) && n < room; i++)
        if (row.why[0] != '\0')
            n += (size_t)snprintf(out + n, room - n, "%ssentinel %.100s: %s", n > 0 ? ", " : "", row.address, row.why);
        else
            n += (size_t)snprintf(out + n, room - n, "%ssentinel %.100s names %.100s", n > 0 ? ", " : "", row.address,
                                  row.names[0] != '\0' ? row.names : "none");
    return n < room ? n : room - 1;
}
