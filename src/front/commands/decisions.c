#include "front/commands/decisions.h"

#include "front/route/lane_choice.h"
#include "front/client/read_side.h"
#include "front/client/session.h"
#include "front/client/timing.h"

/* most unanswered decisions of one client (chosen): bounds the memory of waiting decisions */
#define IN_FLIGHT_MAX 512

static struct decision *call_of(struct list *in_client)
{
    return container_of(in_client, struct decision, in_client);
}

bool decisions_can_go(struct client *client)
{
    if (client->lane_user.in_flight > 0) {
        client_wait_for_replies(client);
        return false;
    }
    if (client_extra(client)->n_asked == 0)
        return true;
    /* A decision that waits for a permit blocks its client, as BLPOP does. */
    if (client_extra(client)->n_asked < IN_FLIGHT_MAX &&
        call_of(client->extra->asked.prev)->until_ns == 0)
        return true;
    client_wait(client, WAIT_DECISION);
    return false;
}

static void note_asked(struct client *client, struct decision *decision)
{
    list_push(&client->extra->asked, &decision->in_client);
    client->extra->n_asked++;
}

/*
 * weir does not measure the time of a command that may wait, as with commands that block in Redis.
 */
static void decisions_start_time(const struct client *client, const struct request *request,
                                 struct decision *decision)
{
    decision->arrived_ns = decision->ask.wait_ns == 0 ? client->lane_user.arrived_ns : 0;
    decision->waited_us = client->lane_user.waited_us;
    decision->share_us = client->front->nodes.worker_lanes.share_us;
    decision->tag = timing_tag(client, request->command, request->argc);
}

static struct quota_context context_of(const struct client *client)
{
    const struct rules *rules = client->front->rules;
    return (struct quota_context){
        .prefix = slice_str(rules->limit_prefix),
        .user = session_user(client),
        .database = session_database(client),
        .has_database = !pin_has(client, PIN_DATABASE),
        .is_resp3 = session_protocol(client) == 3,
        .when_down = rules->when_down,
        .is_down_by_error = rules->is_down_by_error,
        .failover_wait_ns = rules->failover_wait_ns,
        .cell = rules->cell,
        .named = rules->named,
        .now_ns = client->front->loop->now_ns,
    };
}

int32_t decisions_slot(struct client *client, const struct request *request)
{
    const struct quota_context context = context_of(client);
    return quota_slot(client->front->quota, &context,
                      slice_of(request->command->name, request->command->name_len), request->bytes);
}

void decisions_ask(struct client *client, const struct request *request)
{
    if (client_need_extra(client) == NULL)
        return;
    const struct quota_context context = context_of(client);
    struct build error;
    build_init(&error, context.is_resp3);
    struct slice name = slice_of(request->command->name, request->command->name_len);
    struct decision *decision =
        quota_begin(client->front->quota, &context, name, request->bytes, client, &error);
    if (decision == NULL) {
        timing_local(client, timing_tag(client, request->command, request->argc), 1);
        if (error.is_broken)
            client_close_starved(client);
        else
            client_answer(client, slice_of(error.at, error.len));
        reply_mode_take(&client->reply_mode);
    } else {
        decisions_start_time(client, request, decision);
        decision->is_muted = reply_mode_take(&client->reply_mode);
        note_asked(client, decision);
        quota_start(decision);
    }
    build_fini(&error);
}

void decisions_answer_behind(struct client *client, struct slice reply)
{
    struct decision *decision = decision_answered(client->front->quota, reply, client);
    if (decision == NULL) {
        client_close_starved(client);
        return;
    }
    note_asked(client, decision);
}

/* Answers finished decisions in the order of their requests. */
static void answer_done(struct client *client)
{
    while (client_extra(client)->n_asked > 0 && call_of(client->extra->asked.next)->is_done) {
        struct decision *decision = call_of(client->extra->asked.next);
        list_take(&decision->in_client);
        client->extra->n_asked--;
        timing_decided(client, decision);
        read_side_note_answered(client, true); /* the decision wrote a key at the default node */
        if (decision->reply.is_broken)
            client_close_starved(client);
        else if (!decision->is_muted)
            client_answer_now(client, slice_of(decision->reply.at, decision->reply.len));
        quota_end(decision);
    }
}

void decisions_done(struct decision *decision)
{
    struct client *client = decision->owner;
    answer_done(client);
    if (client_extra(client)->n_asked < IN_FLIGHT_MAX / 2 && !client_is_closed(client))
        client_resume(client, WAIT_DECISION);
}

bool decisions_hurry(struct client *client)
{
    if (client_extra(client)->n_asked == 0)
        return true;
    const struct list *asked = &client->extra->asked;
    for (struct list *at = asked->next; at != asked; at = at->next)
        if (quota_hurry(call_of(at)))
            return false;
    return true;
}

void decisions_cancel(struct client *client)
{
    for (; client_extra(client)->n_asked > 0; client->extra->n_asked--) {
        struct decision *decision = call_of(client->extra->asked.next);
        list_take(&decision->in_client);
        if (decision->is_done)
            quota_end(decision);
        else
            quota_cancel(decision);
    }
}
