#include "front/proof.h"

#include "front/holds.h"
#include "quota/prefix.h"
#include "upstream/lane.h"

/* What is answered: what Redis says, or something in place of a number of replicas that would not be true. */
enum { ANSWER_REDIS, ANSWER_NOTHING, ANSWER_WAIT, ANSWER_WAITAOF };

static const struct slice no_replica = {":0\r\n", 4};
static const struct slice no_disk_no_replica = {"*2\r\n:0\r\n:0\r\n", 12};

struct slice proof_channel(const struct client *client, char out[PROOF_CHANNEL_ROOM])
{
    return prefix_channel(slice_str(client->front->rules->limit_prefix), out);
}

void proof_note_lane(struct client *client, struct lane *lane)
{
    if (proof_is_lost(client) || !lane_take_cover(lane))
        return;
    client->wrote_elsewhere = client->is_unproven = false;
    holds_pin(client);
}

static bool is_one_of(struct slice name, const struct slice *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq(name, names[i]))
            return true;
    return false;
}

/* Answered by OK or a number, such a command has written, in every version; of others the answer does not tell. */
static bool surely_writes(const struct request *request)
{
    static const struct slice always[] = {{"incr", 4}, {"incrby", 6}, {"decr", 4}, {"decrby", 6},
                                          {"hset", 4}, {"lpush", 5},  {"rpush", 5}};
    struct slice name = slice_of(request->command->name, request->command->name_len);
    return (slice_eq(name, SLICE("set")) && request->argc == 3) ||
           is_one_of(name, always, sizeof always / sizeof always[0]);
}

static void note_wait(struct client *client, const struct request *request, struct call *call)
{
    call->argument = ANSWER_REDIS;
    if (!client->wrote_elsewhere)
        return;
    holds_pin(client);
    client->is_unproven = true;
    client_hold(client);
    call->argument = ANSWER_NOTHING;
    if ((call->flags & CALL_MUTE) != 0)
        return;
    call->flags |= CALL_MUTE_UNLESS_ERROR;
    call->argument = slice_eq(slice_str(request->command->name), SLICE("wait")) ? ANSWER_WAIT : ANSWER_WAITAOF;
}

void proof_note_sent(struct client *client, const struct request *request, struct call *call)
{
    if (call->effect == EFFECT_WAIT)
        note_wait(client, request, call);
    else if (proof_is_sought(client) && call->effect == EFFECT_NONE && surely_writes(request))
        call->effect = EFFECT_WRITE;
}

static void wait_answered(struct client *client, const struct call *call, bool is_error)
{
    if (call->argument == ANSWER_REDIS)
        return;
    client_go_on(client);
    if (!is_error && call->argument != ANSWER_NOTHING)
        client_answer_now(client, call->argument == ANSWER_WAIT ? no_replica : no_disk_no_replica);
}

void proof_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    char type = glimpse_type(reply);
    if (call->effect == EFFECT_WAIT)
        wait_answered(client, call, type == '-');
    else if (type == ':' || glimpse_is(reply, SLICE("+OK\r\n")))
        client->wrote_elsewhere = client->is_unproven = false;
}
