/*
 * What Redis remembers of a connection and a client relies on: it tracks, also where that was queued in MULTI.
 */
#include "tests/sim/ops.h"

static void say_client(struct client *client, const struct act *act, unsigned words)
{
    say_begin(client, words);
    say_word(client, SLICE("CLIENT"));
    expect(client, act);
}

/* Nothing is invalidated for who has not said CLIENT CACHING YES. */
static void say_track(struct client *client, struct act *act)
{
    bool is_on = act->a % 2 == 0;
    say_client(client, act, is_on ? 4 : 3);
    say_word(client, SLICE("TRACKING"));
    say_word(client, is_on ? SLICE("ON") : SLICE("OFF"));
    if (is_on)
        say_word(client, SLICE("OPTIN"));
}

static const char *judge_track(struct client *client, const struct act *act, const struct reply *reply)
{
    client->session.is_tracking = act->a % 2 == 0;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_tracks(struct client *client, struct act *act)
{
    say_client(client, act, 2);
    say_word(client, SLICE("TRACKINGINFO"));
}

static const char *judge_tracks(struct client *client, const struct act *act, const struct reply *reply)
{
    struct reply flags, first;
    (void)act;
    if (!reply_at(reply, 1, &flags) || !reply_at(&flags, 0, &first))
        return "it does not tell what it tracks";
    bool is_on = slice_eq(first.text, SLICE("on"));
    if (!is_on && !slice_eq(first.text, SLICE("off")))
        return "neither on nor off";
    return is_on == client->session.is_tracking ? NULL : is_on ? "it has not asked to track" : "it tracks no longer";
}

const struct op marks_ops[] = {
    {"track", 3, OP_CONTROL | OP_QUEUES, 0, say_track, judge_track},
    {"tracks", 6, OP_CONTROL | OP_QUEUES, 0, say_tracks, judge_tracks},
    {0},
};
