#include "run/topology/mastership.h"

#include <stdbool.h>
#include <string.h>

static bool mastership_is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static const struct mastership_server *find_server(const struct mastership_view *view,
                                                   const char *key)
{
    for (size_t i = 0; i < view->n_servers; i++)
        if (mastership_is_same(view->servers[i].key, key))
            return &view->servers[i];
    return NULL;
}

/* ---- a list ---- */

static bool says_master(const struct mastership_server *server)
{
    return server->reach == REACH_OK && server->role == ROLE_MASTER;
}

/*
 * Returns how many servers report that they are masters; `but` is not counted. *one: the first of
 * these servers.
 */
static size_t count_masters(const struct mastership_view *view, const struct mastership_server *but,
                            const struct mastership_server **one)
{
    size_t n = 0;
    *one = NULL;
    for (size_t i = 0; i < view->n_servers; i++) {
        const struct mastership_server *server = &view->servers[i];
        if (server == but || !says_master(server))
            continue;
        n++;
        *one = *one != NULL ? *one : server;
    }
    return n;
}

static enum mastership_why why_none(const struct mastership_view *view)
{
    bool answers = false;
    for (size_t i = 0; i < view->n_servers; i++) {
        if (view->servers[i].reach == REACH_UNTRIED)
            return MASTERSHIP_STARTS;
        answers = answers || view->servers[i].reach == REACH_OK;
    }
    return answers ? MASTERSHIP_ALL_REPLICAS : MASTERSHIP_NONE_ANSWERS;
}

static bool has_untried(const struct mastership_view *view)
{
    for (size_t i = 0; i < view->n_servers; i++)
        if (view->servers[i].reach == REACH_UNTRIED)
            return true;
    return false;
}

static struct mastership_choice choose_of_list(const struct mastership_view *view)
{
    const struct mastership_server *now = find_server(view, view->before.named), *other;
    struct mastership_choice choice = {.changed_ns = view->before.changed_ns,
                                       .epoch = view->before.epoch};
    size_t n = count_masters(view, now, &other);
    bool stays = now != NULL && now->role == ROLE_MASTER;
    bool is_start = view->before.named == NULL && view->before.changed_ns == 0;
    choice.rivals = n;
    if (stays && (now->reach == REACH_OK || n != 1)) {
        choice.default_node = choice.named = now->key;
        choice.why = now->reach == REACH_OK ? MASTERSHIP_GOOD : MASTERSHIP_LOST;
    } else if (n == 1 && !(is_start && has_untried(view))) {
        choice.default_node = choice.named = other->key;
        choice.why = MASTERSHIP_GOOD;
        choice.rivals = 0;
        choice.changed_ns = view->now_ns;
    } else {
        choice.why = n > 1 ? MASTERSHIP_SEVERAL : n == 1 ? MASTERSHIP_STARTS : why_none(view);
    }
    choice.pace = choice.why == MASTERSHIP_GOOD ? PACE_CALM : PACE_HURRY;
    return choice;
}

/* ---- sentinels ---- */

/* The claims for one server. */
struct votes {
    const char *server; /* NULL: none */
    size_t n;
    uint64_t epoch; /* the lower median of all claims */
};

/*
 * The claims that count: at most one of each sentinel, and only fresh claims. A claim does not
 * count if its server has since reported that it is a replica.
 */
struct counted {
    const struct mastership_claim *claims[MASTERSHIP_CLAIMS];
    size_t n;
    const char *replica; /* server of a claim that a report of its role has refuted; NULL: none */
};

static bool is_repeated(const struct counted *counted, const struct mastership_claim *claim)
{
    for (size_t i = 0; i < counted->n; i++)
        if (mastership_is_same(counted->claims[i]->sentinel, claim->sentinel))
            return true;
    return false;
}

/*
 * True if the server itself reports that it is a replica, and the report is not older than the
 * claim.
 */
static bool is_refuted(const struct mastership_view *view, const struct mastership_claim *claim)
{
    const struct mastership_server *server = find_server(view, claim->server);
    return server != NULL && server->role == ROLE_REPLICA && server->said_ns >= claim->since_ns;
}

static struct counted count_claims(const struct mastership_view *view)
{
    struct counted counted = {.n = 0};
    for (size_t i = 0; i < view->n_claims && counted.n < MASTERSHIP_CLAIMS; i++) {
        const struct mastership_claim *claim = &view->claims[i];
        if (claim->age != CLAIM_FRESH || claim->server == NULL || is_repeated(&counted, claim))
            continue;
        if (is_refuted(view, claim))
            counted.replica = claim->server;
        else
            counted.claims[counted.n++] = claim;
    }
    return counted;
}

/* Returns the votes of all counted claims for this server. */
static struct votes votes_for(const struct counted *counted, const char *server)
{
    uint64_t epochs[MASTERSHIP_CLAIMS];
    struct votes votes = {.server = server};
    for (size_t i = 0; i < counted->n; i++) {
        if (!mastership_is_same(counted->claims[i]->server, server))
            continue;
        size_t at = votes.n++;
        for (; at > 0 && epochs[at - 1] > counted->claims[i]->epoch; at--)
            epochs[at] = epochs[at - 1];
        epochs[at] = counted->claims[i]->epoch;
    }
    votes.epoch = votes.n > 0 ? epochs[(votes.n - 1) / 2] : 0;
    return votes;
}

/* True if `a` is preferred to `b`, which may be none. */
static bool is_better(const struct votes *a, const struct votes *b, const char *now)
{
    if (b->server == NULL || a->epoch != b->epoch)
        return b->server == NULL || a->epoch > b->epoch;
    if (a->n != b->n)
        return a->n > b->n;
    return mastership_is_same(a->server, now) && !mastership_is_same(b->server, now);
}

/* Returns the best votes of all servers that may win; server NULL: none. */
static struct votes mastership_find_winner(const struct counted *counted, const char *now)
{
    struct votes best = {.server = NULL};
    for (size_t i = 0; i < counted->n; i++) {
        struct votes votes = votes_for(counted, counted->claims[i]->server);
        if ((votes.n > 1 || counted->n == 1) && is_better(&votes, &best, now))
            best = votes;
    }
    return best;
}

static bool are_most(const struct mastership_view *view, size_t n)
{
    return 2 * n > view->n_sentinels;
}

/*
 * Returns the votes for the server that most known sentinels name, whatever its epoch; server NULL:
 * none.
 */
static struct votes find_most(const struct mastership_view *view, const struct counted *counted)
{
    for (size_t i = 0; i < counted->n; i++) {
        struct votes votes = votes_for(counted, counted->claims[i]->server);
        if (are_most(view, votes.n))
            return votes;
    }
    return (struct votes){.server = NULL};
}

/* Returns when the wait for the server's own report ends; 0: no wait. */
static uint64_t word_due_ns(const struct mastership_view *view, const struct counted *counted,
                            const char *key)
{
    const struct mastership_server *server = find_server(view, key);
    uint64_t since_ns = UINT64_MAX;
    if (server != NULL && (server->role == ROLE_MASTER || server->reach == REACH_LOST))
        return 0;
    for (size_t i = 0; i < counted->n; i++)
        if (mastership_is_same(counted->claims[i]->server, key) &&
            counted->claims[i]->since_ns < since_ns)
            since_ns = counted->claims[i]->since_ns;
    uint64_t due_ns = since_ns != UINT64_MAX ? since_ns + MASTERSHIP_WORD_NS : 0;
    return due_ns > view->now_ns ? due_ns : 0;
}

/* True if the named server changes to the winner, perhaps only at choice->again_ns. */
static bool is_followed(const struct mastership_view *view, const struct votes *now,
                        const struct votes *winner)
{
    const struct mastership_before *before = &view->before;
    if (before->named == NULL && before->changed_ns == 0)
        return true;
    if (winner->epoch > before->epoch)
        return true;
    if (winner->epoch == before->epoch)
        return winner->n > now->n;
    return are_most(view, winner->n) && now->n <= 1;
}

static void mastership_change(const struct mastership_view *view, const struct counted *counted,
                              const struct votes *winner, struct mastership_choice *choice)
{
    bool is_newer = winner->epoch > view->before.epoch || view->before.changed_ns == 0;
    uint64_t word_ns = word_due_ns(view, counted, winner->server);
    uint64_t keep_ns = is_newer ? 0 : view->before.changed_ns + MASTERSHIP_KEEP_NS;
    choice->ask = word_ns != 0 ? winner->server : NULL;
    choice->again_ns = word_ns > keep_ns ? word_ns : keep_ns;
    if (choice->again_ns > view->now_ns)
        return;
    choice->again_ns = 0;
    choice->named = winner->server;
    choice->epoch = winner->epoch;
    choice->changed_ns = view->now_ns;
}

/* Sets named, epoch, changed_ns, again_ns, and `ask` while the winner's own report is awaited. */
static void name_server(const struct mastership_view *view, const struct counted *counted,
                        struct mastership_choice *choice)
{
    const char *before = view->before.named;
    struct votes now = votes_for(counted, before);
    struct votes winner = mastership_find_winner(counted, before);
    struct votes most = find_most(view, counted);
    choice->named = before;
    if (winner.server != NULL && mastership_is_same(winner.server, before)) {
        bool is_undisputed = now.n == counted->n && are_most(view, now.n);
        if (now.epoch > choice->epoch || is_undisputed)
            choice->epoch = now.epoch;
    } else if (winner.server != NULL && is_followed(view, &now, &winner)) {
        mastership_change(view, counted, &winner, choice);
    } else if (most.server != NULL && !mastership_is_same(most.server, before) &&
               is_followed(view, &now, &most)) {
        mastership_change(view, counted, &most, choice);
    }
}

static enum mastership_why why_unnamed(const struct counted *counted,
                                       const struct mastership_choice *choice)
{
    if (choice->ask != NULL)
        return MASTERSHIP_AWAITED;
    if (counted->n > 0)
        return MASTERSHIP_DISAGREE;
    return counted->replica != NULL ? MASTERSHIP_IS_REPLICA : MASTERSHIP_NO_CLAIM;
}

static void judge_named(const struct mastership_view *view, const struct counted *counted,
                        struct mastership_choice *choice)
{
    const struct mastership_server *server = find_server(view, choice->named);
    const char *ask = choice->named;
    if (choice->named == NULL) {
        choice->why = why_unnamed(counted, choice);
        ask = choice->why == MASTERSHIP_IS_REPLICA ? counted->replica : NULL;
    } else if (server != NULL && server->role == ROLE_MASTER) {
        choice->default_node = choice->named;
        choice->why = server->reach == REACH_OK ? MASTERSHIP_GOOD : MASTERSHIP_LOST;
        ask = NULL;
    } else {
        choice->why = server != NULL && server->role == ROLE_REPLICA ? MASTERSHIP_IS_REPLICA
                                                                     : MASTERSHIP_AWAITED;
    }
    choice->ask = choice->ask != NULL ? choice->ask : ask;
}

static struct mastership_choice choose_by_sentinels(const struct mastership_view *view)
{
    struct counted counted = count_claims(view);
    struct mastership_choice choice = {.epoch = view->before.epoch,
                                       .changed_ns = view->before.changed_ns};
    name_server(view, &counted, &choice);
    judge_named(view, &counted, &choice);
    choice.rivals = counted.n - votes_for(&counted, choice.named).n;
    choice.pace = choice.why == MASTERSHIP_GOOD && choice.rivals == 0 ? PACE_CALM : PACE_HURRY;
    return choice;
}

struct mastership_choice mastership_choose(const struct mastership_view *view)
{
    return view->form == MASTERSHIP_LIST ? choose_of_list(view) : choose_by_sentinels(view);
}
