/*
 * CLIENT TRACKING: tracking stays on, also if the command was queued in MULTI. REDIRECT reaches
 * connections of the client's own user only.
 */
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static void say_client(struct client *client, const struct act *act, unsigned words)
{
    say_begin(client, words);
    say_word(client, SLICE("CLIENT"));
    expect(client, act);
}

/* With OPTIN nothing is invalidated for a client without CLIENT CACHING YES. */
static void say_track(struct client *client, struct act *act)
{
    bool is_on = act->a % 2 == 0;
    say_client(client, act, is_on ? 4 : 3);
    say_word(client, SLICE("TRACKING"));
    say_word(client, is_on ? SLICE("ON") : SLICE("OFF"));
    if (is_on)
        say_word(client, SLICE("OPTIN"));
}

static const char *judge_track(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    client->session.is_tracking = act->a % 2 == 0;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_tracks(struct client *client, struct act *act)
{
    say_client(client, act, 2);
    say_word(client, SLICE("TRACKINGINFO"));
}

static const char *judge_tracks(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    struct reply flags, first;
    (void)act;
    if (!reply_at(reply, 1, &flags) || !reply_at(&flags, 0, &first))
        return "it does not tell what it tracks";
    bool is_on = slice_eq(first.text, SLICE("on"));
    if (!is_on && !slice_eq(first.text, SLICE("off")))
        return "neither on nor off";
    return is_on == client->session.is_tracking ? NULL
           : is_on                              ? "it has not asked to track"
                                                : "it tracks no longer";
}

/* ---- REDIRECT ---- */

#define NOBODYS_ID (INT64_C(1) << 40)

/*
 * The target of a client's last redirect, and its state then. Earlier redirects are judged loosely.
 */
static struct pointed {
    const struct client *target; /* NULL: no client has the id */
    unsigned life, user;
    uint64_t judged;
    bool is_idle;
} pointed[256];

static struct pointed look_at(struct client *client, uint32_t pick)
{
    struct client *target = pick % 8 == 0 ? NULL : client_picked(pick / 8);
    if (target == NULL || target == client || target->session.id == 0)
        return (struct pointed){0};
    target->session.may_be_invalidated = true;
    return (struct pointed){target, target->life, target->session.user, target->judged,
                            target->n_expected == 0};
}

static void say_redirect(struct client *client, struct act *act)
{
    struct pointed *now = &pointed[client->number % 256];
    *now = look_at(client, act->a);
    act->b = (uint32_t)client->judged + client->n_expected; /* the number of the request */
    act->c = now->target == NULL;
    now->is_idle &= client->n_expected == 0;
    say_client(client, act, 6);
    say_word(client, SLICE("TRACKING"));
    say_word(client, SLICE("ON"));
    say_word(client, SLICE("REDIRECT"));
    say_text(client, "%lld",
             (long long)(now->target != NULL ? now->target->session.id : NOBODYS_ID));
    say_word(client, SLICE("OPTIN"));
}

/* True if the target has sent and received nothing since the redirect. */
static bool has_stayed(const struct client *client, const struct act *act,
                       const struct pointed *then)
{
    const struct client *target = then->target;
    return target != NULL && then->is_idle && act->b == (uint32_t)client->judged - 1 &&
           target->conn != NULL && target->life == then->life && target->judged == then->judged &&
           target->n_expected == 0 && target->session.user == then->user && !target->is_lost &&
           !target->has_shut;
}

/*
 * Judges REDIRECT: a client may redirect to connections of its own user only. For a named user
 * (above 0), a redirect to an idle connection of the user must succeed.
 */
static const char *judge_redirect(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    struct session *session = &client->session;
    const struct pointed *then = &pointed[client->number % 256];
    if (reply_begins(reply, '-', SLICE("ERR The client ID you want redirect to does not exist"))) {
        bool must = has_stayed(client, act, then) && run_is_whole() && session->user > 0 &&
                    session->user == then->user;
        return must && !session->is_executing
                   ? "a connection of its own user, and it may not be told"
                   : NULL;
    }
    if (!reply_is_ok(reply))
        return "it is not OK";
    session->is_tracking = session->has_redirected = true;
    if (act->c != 0)
        return "nobody has that id";
    if (has_stayed(client, act, then) && session->user != then->user)
        return "another user's connection is told";
    return NULL;
}

const struct op marks_ops[] = {
    {"track", 3, OP_CONTROL | OP_QUEUES, 0, say_track, judge_track},
    {"redirect", 4, OP_CONTROL | OP_QUEUES, 0, say_redirect, judge_redirect},
    {"tracks", 6, OP_CONTROL | OP_QUEUES, 0, say_tracks, judge_tracks},
    {0},
};
