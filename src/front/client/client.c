#include "front/client/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "upstream/lane/deliver.h"
#include "upstream/lane/lend.h"

_Static_assert(CLIENT_CLOSED < 8 && CLOSED_COUNT <= 32, "they fit into their bits");
/* With the allocator's overhead an idle client takes 368 bytes. */
_Static_assert(sizeof(struct client) <= 360, "what few clients need belongs into struct extra");

static void client_move(struct client *client, enum client_state to)
{
    assert(client_state_may_follow((enum client_state)client->state, to));
    client->state = (uint8_t)to & 7U;
}

void client_admit(struct client *client)
{
    if (client_is_shaking(client))
        client_move(client, CLIENT_OPEN);
}

struct extra *client_want_extra(struct client *client)
{
    if (client->extra == NULL && (client->extra = calloc(1, sizeof *client->extra)) != NULL) {
        list_init(&client->extra->asked);
        replies_init(&client->extra->replies, &client->front->loop->pool);
    }
    return client->extra;
}

struct extra *client_need_extra(struct client *client)
{
    struct extra *extra = client_want_extra(client);
    if (extra == NULL)
        client_close_starved(client);
    return extra;
}

struct spread *client_need_spread(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->spread != NULL)
        return extra != NULL ? extra->spread : NULL;
    extra->spread = spread_new();
    if (extra->spread == NULL)
        client_close_starved(client);
    return extra->spread;
}

void client_wait(struct client *client, enum client_wait reason)
{
    client->waits |= (uint16_t)reason;
}

void client_resume_woken(struct client *client, enum client_wait reason)
{
    client->waits &= (uint16_t)~reason;
}

void client_resume(struct client *client, enum client_wait reason)
{
    client_resume_woken(client, reason);
    link_wake(&client->link);
}

void client_want_idle(struct client *client)
{
    client->lane_user.wants_idle |= client->lane_user.in_flight > 0;
    if (client_extra(client)->spread != NULL)
        spread_want_idle(client_extra(client)->spread);
}

void client_wait_for_replies(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    client->lane_user.wants_idle |= client->lane_user.in_flight > 0 || spread == NULL;
    if (spread != NULL)
        spread_want_idle(spread);
    client_wait(client, WAIT_REPLIES);
}

void pin_add(struct client *client, enum pin pin)
{
    struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    client->pins |= (uint16_t)pin;
    if ((pin & PINS_THAT_LAST) == 0 || lane == NULL)
        return;
    lane_forbid_reuse(lane);
    lend_list(lane);
}

void client_note_heavy(struct client *client)
{
    struct extra *extra = client_want_extra(client);
    if (extra != NULL)
        extra->heavy_until_ns = client->front->loop->now_ns + HEAVY_NS;
}

bool client_keep(struct client *client, const struct command *command, struct slice bytes,
                 uint32_t n)
{
    struct extra *extra = client_want_extra(client);
    return extra != NULL && unanswered_add(&extra->unanswered, &client->front->loop->pool,
                                           keep_kind(command), bytes, n) != NULL;
}

void client_keep_nothing(struct client *client)
{
    if (client->extra != NULL)
        unanswered_clear(&client->extra->unanswered, &client->front->loop->pool);
}

static void client_log_closed(const struct client *client, enum log_site site, const char *why)
{
    client->front->client_ops->log_closed(client, site, why);
}

/* ---- replies, in the client's order ---- */

void client_limit_unread(struct client *client, uint64_t more)
{
    uint64_t waiting = link_pending(&client->link) + more;
    if (client->extra != NULL)
        waiting += replies_bytes(&client->extra->replies);
    if (waiting > client->front->rules->output_limit_bytes && !client_is_closed(client)) {
        char why[96];
        snprintf(why, sizeof why, "%" PRIu64 " bytes of replies are unread, more than output-limit",
                 waiting);
        client_log_closed(client, LOG_SITE_CLIENT_CLOSED, why);
        client_close_for(client, CLOSED_BUFFER);
    }
}

void client_note_kept(struct client *client, size_t n)
{
    client->extra->kept_bytes += n;
    pool_note_more(&client->front->loop->pool, n);
    client_limit_unread(client, client->extra->kept_bytes);
}

void client_note_kept_less(struct client *client, size_t n)
{
    client->extra->kept_bytes -= n;
    pool_note_less(&client->front->loop->pool, n);
}

void client_output(struct client *client, const char *data, size_t n)
{
    if (client->output == OUTPUT_DROPPED || client->output == OUTPUT_CUT)
        return;
    if (client->lane_user.is_returning) {
        client->front->client_ops->put_behind(client, data, n);
        return;
    }
    link_write(&client->link, data, n);
    client_limit_unread(client, 0);
}

static bool is_in_message(const struct client *client)
{
    return client_has_own_lane(client) && client->lane_user.lane != NULL &&
           lane_is_in_message(client->lane_user.lane);
}

bool client_is_owed(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    return client_has_calls(client) || client->lane_user.is_returning || client->is_carrying ||
           client_extra(client)->n_compounds > 0 ||
           (lane != NULL && (lane->ends_run != RUN_GOES_ON || lane_is_ending(lane)));
}

void client_answer(struct client *client, struct slice reply)
{
    if (reply_mode_is_deaf(&client->reply_mode))
        return;
    if (client_extra(client)->n_asked > 0)
        client->front->client_ops->answer_behind(client, reply);
    else
        client_answer_now(client, reply);
}

static void say_behind_places(struct client *client, struct spread *spread, struct slice reply)
{
    struct replies *replies = &client->extra->replies;
    if (spread_end_run(spread, replies) && replies_say(replies, reply))
        client_limit_unread(client, 0);
    else
        client_close_starved(client);
}

void client_answer_now(struct client *client, struct slice reply)
{
    if (pin_has(client, PIN_PASSTHROUGH)) {
        client_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                          "weir cannot place its own reply among uncounted replies");
        client_leave(client);
        return;
    }
    struct spread *spread = client_extra(client)->spread;
    if (spread_in_flight(spread) > 0 || client_extra(client)->n_compounds > 0) {
        say_behind_places(client, spread, reply);
        return;
    }
    if (client->lane_user.in_flight == 0 && !is_in_message(client)) {
        client_output(client, reply.at, reply.len);
        return;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    struct lane_user *lane_user = &client->lane_user;
    bool has_run = !lane_end_run(lane_user) ||
                   replies_begin(&extra->replies, &extra->own,
                                 deliver_is_in_frame_of(lane_user->lane, lane_user));
    if (has_run && replies_say(&extra->replies, reply))
        client_limit_unread(client, 0);
    else
        client_close_starved(client);
}

bool client_begin_apart(struct client *client, struct reply_source *source)
{
    struct spread *spread = client_need_spread(client);
    if (spread == NULL)
        return false;
    struct replies *replies = &client->extra->replies;
    if (spread_end_run(spread, replies) && replies_begin(replies, source, false))
        return true;
    client_close_starved(client);
    return false;
}

void client_output_from(struct client *client, struct reply_source *source, const char *data,
                        size_t n, bool is_whole)
{
    struct replies *replies = &client->extra->replies;
    switch (replies_take(replies, source, data, n, is_whole)) {
    case REPLIES_PASS:
        client_output(client, data, n);
        break;
    case REPLIES_KEPT:
        client_limit_unread(client, 0);
        break;
    case REPLIES_FULL:
        client_close_starved(client);
        break;
    }
    if (!client_is_closed(client))
        replies_flush(replies, client_put_out, client);
}

void client_answer_apart(struct client *client, struct reply_source *source, struct slice reply)
{
    struct replies *replies = &client->extra->replies;
    if (reply.len > 0)
        client_output_from(client, source, reply.at, reply.len, true);
    if (client_is_closed(client))
        return;
    replies_end(replies, source);
    replies_flush(replies, client_put_out, client);
}

bool client_put_out(void *arg, const char *data, size_t n)
{
    struct client *client = arg;
    client_output(client, data, n);
    return !client_is_closed(client);
}

char *client_copy_refusal(enum lane_end end, struct slice reply)
{
    if (end == END_LOGIN_REFUSED)
        reply = SLICE("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    else if (end == END_LATE)
        reply = err_text(ERR_UPSTREAM_TIMEOUT);
    else if (end == END_LOST)
        reply = err_text(ERR_UPSTREAM_UNAVAILABLE);
    bool is_text = reply.len > 0 && memchr(reply.at, '\0', reply.len) == NULL;
    return is_text ? strndup(reply.at, reply.len) : NULL;
}

void client_forget_refusal(struct client *client)
{
    if (client->extra == NULL)
        return;
    free(client->extra->refusal);
    client->extra->refusal = NULL;
}

/* ---- LIMIT TOP ---- */

void client_tell_top(struct client *client)
{
    struct front *front = client->front;
    const struct subject *subject = client->subject;
    bool is_operators = client_is_operator(client);
    if (front->peak_rates.touched != 0 && is_operators)
        peak_rates_drop(&front->peak_rates);
    if (front->peak_rates.touched != 0)
        peak_rates_flush(&front->peak_rates, front->loop->now_ns);
    if (subject == NULL || is_operators || (client->n_commands == 0 && client->n_bytes == 0))
        return;
    const uint64_t amounts[TOP_BY_COUNT] = {client->n_commands, client->n_refused, client->n_bytes,
                                            0};
    top_add_each(front->top, slice_of(subject->policy_state->name, subject->policy_state->name_len),
                 subject_name(subject), subject->hash, amounts, client->refused_by - 1U,
                 front->loop->now_ns);
    /* with a keyed subject charge_note_refused has noted the offender */
    if (client->n_refused > 0 && !client->is_keyed)
        offenders_note(front->offenders, client->refused_by - 1U, OFFENDER_REFUSED,
                       subject_name(subject), subject->hash);
    client->n_commands = client->n_bytes = 0;
    client->n_refused = 0;
}

void client_change_refuser(struct client *client, const struct limit *limit)
{
    if (client->n_refused > 0)
        client_tell_top(client);
    client->refused_by = (uint16_t)(limit->id + 1U);
}

/* ---- closing ---- */

static void give_reason(struct client *client, enum ending_reason reason)
{
    if (client->reason == CLOSED_BY_CLIENT)
        client->reason = (uint8_t)reason & 31U;
}

void client_leave(struct client *client)
{
    if (client->state >= CLIENT_CLOSING)
        return;
    if (client->state == CLIENT_OPEN)
        client_move(client, CLIENT_DRAINING);
    /* later bytes are thrown away, but the client's EOF must be noticed */
    link_resume(&client->link);
    client->front->client_ops->on_leaving(client);
}

void client_drop_output(struct client *client)
{
    if (client->output == OUTPUT_SENT)
        client->output = OUTPUT_DROPPED;
}

void client_drop(struct client *client)
{
    client_drop_output(client);
    client_leave(client);
}

void client_cut_for(struct client *client, enum ending_reason reason)
{
    if (client_is_closed(client) || client->output == OUTPUT_CUT)
        return;
    give_reason(client, reason);
    if (client->output == OUTPUT_DROPPED) {
        client_close(client);
        return;
    }
    if (client->state != CLIENT_CLOSING)
        client_move(client, CLIENT_CLOSING);
    client->output = OUTPUT_CUT;
    link_finish(&client->link);
}

void client_part(struct client *client)
{
    give_reason(client, CLOSED_DRAIN);
    client_move(client, CLIENT_CLOSING);
    client->output = OUTPUT_ENDED;
    link_resume(&client->link);
    link_part(&client->link);
}

void client_note_kept_open(struct client *client)
{
    if (client->output == OUTPUT_ENDED && !link_is_sending(&client->link))
        client->output = OUTPUT_OVERDUE;
}

void client_return(struct client *client)
{
    if (!client_is_parted(client))
        return;
    client_move(client, CLIENT_OPEN);
    client->output = OUTPUT_SENT;
}

void client_close(struct client *client)
{
    enum client_state was = (enum client_state)client->state;
    if (was == CLIENT_CLOSED)
        return;
    client_move(client, CLIENT_CLOSED);
    link_close(&client->link);
    client->front->client_ops->on_close(client, was);
}

void client_leave_for(struct client *client, enum ending_reason reason)
{
    give_reason(client, reason);
    client_leave(client);
}

void client_close_for(struct client *client, enum ending_reason reason)
{
    give_reason(client, reason);
    client_close(client);
}

void client_close_starved(struct client *client)
{
    if (client_is_closed(client))
        return;
    client_log_closed(client, LOG_SITE_MEMORY, "out of memory");
    client_close_for(client, CLOSED_MEMORY);
}
