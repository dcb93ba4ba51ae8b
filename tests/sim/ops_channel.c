/* Channels, patterns and shard channels: a subscriber gets exactly the messages of its channels. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static const struct channel_kind {
    const char *subscribe, *unsubscribe, *publish, *message;
    unsigned words; /* of a message */
} kinds[CHANNEL_KINDS] = {
    [CHANNEL] = {"subscribe", "unsubscribe", "publish", "message", 3},
    [PATTERN] = {"psubscribe", "punsubscribe", "publish", "pmessage", 4},
    [SHARD] = {"ssubscribe", "sunsubscribe", "spublish", "smessage", 3},
};

/* Servers before 7.0 have no shard channels. */
static enum channel_kind_name known(enum channel_kind_name kind)
{
    return kind == SHARD && run.plan.redis.version < 70000 ? CHANNEL : kind;
}

/*
 * Channels and shard channels have one character behind the colon. A pattern matches two channels.
 */
static struct slice name_of(enum channel_kind_name kind, unsigned which, char text[WORD_ROOM])
{
    if (kind == PATTERN)
        return print(text, "ch:[%u%u]", which, (which + 1) % SHARED_CHANNELS);
    return print(text, kind == SHARD ? "sh:%u" : "ch:%u", which);
}

static unsigned which(const struct act *act)
{
    return act->a % SHARED_CHANNELS;
}

static unsigned bit(enum channel_kind_name kind, const struct act *act)
{
    return 1U << (kind * SHARED_CHANNELS + which(act));
}

static void say_two(struct client *client, const struct act *act, const char *word,
                    enum channel_kind_name kind)
{
    char name[WORD_ROOM];
    say_begin(client, 2);
    say_word(client, slice_str(word));
    say_word(client, name_of(kind, which(act), name));
    expect(client, act);
}

/* ---- publishing ---- */

static void publish(struct client *client, struct act *act, enum channel_kind_name kind)
{
    char text[WORD_ROOM];
    act->b = ++client->numbers;
    say_begin(client, 3);
    say_word(client, slice_str(kinds[kind].publish));
    say_word(client, name_of(kind, which(act), text));
    say_word(client, print(text, "=%u.%u.%u=", client->number, client->life, act->b));
    expect(client, act);
}

static void say_publish(struct client *client, struct act *act)
{
    publish(client, act, CHANNEL);
}

static void say_spublish(struct client *client, struct act *act)
{
    publish(client, act, known(SHARD));
}

static const char *judge_publish(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply->type == ':' && reply->number >= 0 ? NULL : "it is no number of subscribers";
}

/* ---- subscribing ---- */

/* The subscription count as in confirmations: shard channels have a count of their own. */
static unsigned *count_of(struct session *session, enum channel_kind_name kind)
{
    return kind == SHARD ? &session->n_sharded : &session->n_subscribed;
}

static const char *as_confirmation(struct client *client, const struct act *act,
                                   const struct reply *reply, enum channel_kind_name kind,
                                   const char *word)
{
    struct reply first, channel, count;
    char text[WORD_ROOM];
    struct slice name = name_of(kind, which(act), text);
    if (reply->type != (client->session.is_resp3 ? '>' : '*') || reply->number != 3 ||
        !reply_at(reply, 0, &first) || !reply_at(reply, 1, &channel) || !reply_at(reply, 2, &count))
        return "it is no confirmation";
    if (!reply_is(&first, '$', slice_str(word)) || !reply_is(&channel, '$', name))
        return "a confirmation of something else";
    return reply_is_integer(&count, *count_of(&client->session, kind)) ? NULL
                                                                       : "not so many channels";
}

static void attend(struct client *client, const struct act *act, enum channel_kind_name kind)
{
    say_two(client, act, kinds[kind].subscribe, kind);
    client->intent.subscribed |= bit(kind, act);
}

static const char *judge_listening(struct client *client, const struct act *act,
                                   const struct reply *reply, enum channel_kind_name kind)
{
    struct session *session = &client->session;
    bool *is_subscribed = &session->is_subscribed[kind][which(act)];
    if (reply->type != '-') {
        *count_of(session, kind) += !*is_subscribed;
        *is_subscribed = true;
    }
    return as_confirmation(client, act, reply, kind, kinds[kind].subscribe);
}

static void leave(struct client *client, const struct act *act, enum channel_kind_name kind)
{
    say_two(client, act, kinds[kind].unsubscribe, kind);
    client->intent.subscribed &= ~bit(kind, act);
}

static const char *judge_leaving(struct client *client, const struct act *act,
                                 const struct reply *reply, enum channel_kind_name kind)
{
    struct session *session = &client->session;
    bool *is_subscribed = &session->is_subscribed[kind][which(act)];
    if (session->n_subscribed + session->n_sharded == 0 &&
        reply_begins(reply, '-', SLICE("NOSUB ")))
        return NULL; /* in newer servers */
    *count_of(session, kind) -= *is_subscribed;
    *is_subscribed = false;
    return as_confirmation(client, act, reply, kind, kinds[kind].unsubscribe);
}

static void say_subscribe(struct client *client, struct act *act)
{
    attend(client, act, CHANNEL);
}

static void say_psubscribe(struct client *client, struct act *act)
{
    attend(client, act, PATTERN);
}

static void say_ssubscribe(struct client *client, struct act *act)
{
    attend(client, act, known(SHARD));
}

static void say_unsubscribe(struct client *client, struct act *act)
{
    leave(client, act, CHANNEL);
}

static void say_punsubscribe(struct client *client, struct act *act)
{
    leave(client, act, PATTERN);
}

static void say_sunsubscribe(struct client *client, struct act *act)
{
    leave(client, act, known(SHARD));
}

static const char *judge_subscribe(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    return judge_listening(client, act, reply, CHANNEL);
}

static const char *judge_psubscribe(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    return judge_listening(client, act, reply, PATTERN);
}

static const char *judge_ssubscribe(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    return judge_listening(client, act, reply, known(SHARD));
}

static const char *judge_unsubscribe(struct client *client, const struct act *act,
                                     const struct reply *reply)
{
    return judge_leaving(client, act, reply, CHANNEL);
}

static const char *judge_punsubscribe(struct client *client, const struct act *act,
                                      const struct reply *reply)
{
    return judge_leaving(client, act, reply, PATTERN);
}

static const char *judge_sunsubscribe(struct client *client, const struct act *act,
                                      const struct reply *reply)
{
    return judge_leaving(client, act, reply, known(SHARD));
}

/* ---- push messages ---- */

bool channel_is_message(const struct reply *reply)
{
    struct reply word;
    if (!reply_at(reply, 0, &word))
        return false;
    for (unsigned k = 0; k < CHANNEL_KINDS; k++)
        if (reply_is(&word, '$', slice_str(kinds[k].message)))
            return true;
    return false;
}

/*
 * Judges the pattern of a message: it must match the channel, and the client must be subscribed to
 * it.
 */
static const char *judge_pattern(const struct session *session, const struct reply *reply,
                                 unsigned c)
{
    struct reply pattern;
    char text[WORD_ROOM];
    if (!reply_at(reply, 1, &pattern))
        return "it is no message";
    for (unsigned p = 0; p < SHARED_CHANNELS; p++)
        if (reply_is(&pattern, '$', name_of(PATTERN, p, text)))
            return session->is_subscribed[PATTERN][p] && (c == p || c == (p + 1) % SHARED_CHANNELS)
                       ? NULL
                       : "a message by a pattern that it has not subscribed, or that has it not";
    return "a pattern that nobody has said";
}

static const char *judge_invalidation(const struct client *client, const struct reply *reply)
{
    struct reply keys;
    if (reply->number != 2 || !reply_at(reply, 1, &keys) || (keys.type != '*' && !keys.is_nil))
        return "it is no invalidation";
    /* clients with tracking get a flush, with OPTIN too */
    bool is_of_all = keys.is_nil;
    return client->session.may_be_invalidated || (is_of_all && client->session.is_tracking)
               ? NULL
               : "it does not track";
}

const char *channel_judge_message(struct client *client, const struct reply *reply)
{
    struct reply word, channel, payload;
    unsigned c, from, life, number, kind = 0;
    char text[WORD_ROOM];
    if (!reply_at(reply, 0, &word))
        return "it is no message";
    if (reply_is(&word, '$', SLICE("invalidate")))
        return judge_invalidation(client, reply);
    if (reply_is(&word, '$', SLICE("tracking-redir-broken")))
        return client->session.has_redirected ? NULL : "nobody is told what it tracks";
    while (kind < CHANNEL_KINDS && !reply_is(&word, '$', slice_str(kinds[kind].message)))
        kind++;
    if (kind == CHANNEL_KINDS || reply->number != (int64_t)kinds[kind].words ||
        !reply_at(reply, kinds[kind].words - 2, &channel) ||
        !reply_at(reply, kinds[kind].words - 1, &payload))
        return "it is no message";
    snprintf(text, sizeof text, "%.*s %.*s", (int)channel.text.len, channel.text.at,
             (int)payload.text.len, payload.text.at);
    if (sscanf(text, kind == SHARD ? "sh:%u =%u.%u.%u=" : "ch:%u =%u.%u.%u=", &c, &from, &life,
               &number) != 4 ||
        c >= SHARED_CHANNELS || from >= 256)
        return "a message that nobody has sent";
    if (kind == PATTERN)
        return judge_pattern(&client->session, reply, c);
    return client->session.is_subscribed[kind][c]
               ? NULL
               : "a message of a channel that it has not subscribed";
}

const struct op channel_ops[] = {
    {"publish", 15, OP_QUEUES, LIMIT_ANY, say_publish, judge_publish},
    {"spublish", 5, OP_QUEUES, LIMIT_ANY, say_spublish, judge_publish},
    {"subscribe", 3, OP_SUBSCRIBED, LIMIT_ANY, say_subscribe, judge_subscribe},
    {"psubscribe", 2, OP_SUBSCRIBED, LIMIT_ANY, say_psubscribe, judge_psubscribe},
    {"ssubscribe", 2, OP_SUBSCRIBED, LIMIT_ANY, say_ssubscribe, judge_ssubscribe},
    {"unsubscribe", 2, OP_SUBSCRIBED | OP_SUBSCRIBER, 0, say_unsubscribe, judge_unsubscribe},
    {"punsubscribe", 2, OP_SUBSCRIBED | OP_SUBSCRIBER, 0, say_punsubscribe, judge_punsubscribe},
    {"sunsubscribe", 2, OP_SUBSCRIBED | OP_SUBSCRIBER, 0, say_sunsubscribe, judge_sunsubscribe},
    {0},
};
