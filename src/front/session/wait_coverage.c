#include "front/session/wait_coverage.h"

#include "quota/prefix.h"
#include "upstream/lane/lane.h"

/*
 * call.argument of WAIT selects the client's answer: Redis' own, none, or that no replica has the
 * writes.
 */
enum { ANSWER_REDIS, ANSWER_NOTHING, ANSWER_WAIT, ANSWER_WAITAOF };

static const struct slice no_replica = {":0\r\n", 4};
static const struct slice no_disk_no_replica = {"*2\r\n:0\r\n:0\r\n", 12};

struct slice coverage_key(const struct client *client, char out[COVERAGE_KEY_ROOM])
{
    return prefix_cover(slice_str(client->front->rules->limit_prefix), out);
}

void coverage_note_lane(struct client *client, struct lane *lane)
{
    if (coverage_is_lost(client) || !lane_take_cover(lane))
        return;
    client->wrote_at = 0;
    pin_add(client, PIN_WAIT);
}

/*
 * True if the command has certainly written when answered with +OK or a number, in every Redis
 * version.
 */
static bool surely_writes(const struct request *request)
{
    static const struct slice always[] = {{"incr", 4}, {"incrby", 6}, {"decr", 4}, {"decrby", 6},
                                          {"hset", 4}, {"lpush", 5},  {"rpush", 5}};
    struct slice name = slice_of(request->command->name, request->command->name_len);
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (slice_eq(name, always[i]))
            return true;
    return slice_eq(name, SLICE("set")) && request->argc == 3;
}

static void note_wait(struct client *client, const struct request *request, struct call *call)
{
    call->argument = ANSWER_REDIS;
    if (client->wrote_at == 0)
        return;
    pin_add(client, PIN_WAIT);
    client_wait(client, WAIT_ANSWER);
    call->argument = ANSWER_NOTHING;
    if ((call->flags & CALL_MUTE) != 0)
        return;
    call->flags |= CALL_MUTE_UNLESS_ERROR;
    call->argument =
        slice_eq(slice_str(request->command->name), SLICE("wait")) ? ANSWER_WAIT : ANSWER_WAITAOF;
}

void coverage_note_sent(struct client *client, const struct request *request, struct call *call)
{
    if (call->effect == EFFECT_WAIT)
        note_wait(client, request, call);
    else if (coverage_is_sought(client) && call->effect == EFFECT_NONE && surely_writes(request))
        call->effect = EFFECT_WRITE;
}

void coverage_wait_answered(struct client *client, const struct call *call,
                            const struct glimpse *reply)
{
    if (call->argument == ANSWER_REDIS)
        return;
    client_resume(client, WAIT_ANSWER);
    if (glimpse_type(reply) != '-' && call->argument != ANSWER_NOTHING)
        client_answer_now(client, call->argument == ANSWER_WAIT ? no_replica : no_disk_no_replica);
}

void coverage_write_answered(struct client *client, const struct glimpse *reply)
{
    if (glimpse_type(reply) == ':' || glimpse_is(reply, SLICE("+OK\r\n")))
        client->wrote_at = 0;
}
