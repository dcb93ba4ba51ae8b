#include "front/client/again.h"

#include <assert.h>
#include <stdlib.h>

#include "front/client/charge.h"
#include "front/route/request.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/route/fair_share.h"
#include "front/route/reads.h"
#include "front/client/session.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"
#include "upstream/lane/lanes.h"

/*
 * Pauses of a client between two tries while the server refuses. Chosen: a role query takes a few
 * milliseconds, a failover takes seconds.
 */
#define FIRST_PAUSE_NS (10 * NS_PER_MS)
#define MOST_PAUSE_NS (100 * NS_PER_MS)

static uint64_t again_now_ns(const struct client *client)
{
    return client->front->loop->now_ns;
}

static struct pool *again_pool_of(const struct client *client)
{
    return &client->front->loop->pool;
}

static struct alarms *again_alarms_of(const struct client *client)
{
    return &client->front->timeouts.alarms;
}

/* ---- the alarm ---- */

static void again_set_alarm(struct client *client, uint64_t due_ns)
{
    struct again *again = client->extra->again;
    alarm_stop(again_alarms_of(client), &again->alarm);
    alarm_set(again_alarms_of(client), &again->alarm,
              due_ns < again->over_ns ? due_ns : again->over_ns);
}

static void again_on_due(struct alarm *alarm)
{
    struct again *again = container_of(alarm, struct again, alarm);
    struct client *client = again->client;
    if (again_now_ns(client) >= again->over_ns)
        again_pass_on(client);
    else
        link_wake(&client->link);
}

static void again_look_later(struct client *client)
{
    struct again *again = client->extra->again;
    again->look_ns = again_now_ns(client) + again->pause_ns;
    again->pause_ns = again->pause_ns * 2 < MOST_PAUSE_NS ? again->pause_ns * 2 : MOST_PAUSE_NS;
    again_set_alarm(client, again->look_ns);
}

/* Returns extra.again, allocated on first use. NULL: out of memory, and the client is closed. */
static struct again *need_again(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->again != NULL)
        return extra != NULL ? extra->again : NULL;
    extra->again =
        alarms_reserve(again_alarms_of(client), 1) ? calloc(1, sizeof *extra->again) : NULL;
    if (extra->again == NULL) {
        client_close_starved(client);
        return NULL;
    }
    extra->again->client = client;
    extra->again->alarm.on_due = again_on_due;
    list_init(&extra->again->in_front);
    return extra->again;
}

/*
 * Begins the wait when the first request has come back. `since_ns`: time of the first refusal of
 * that request. If this is the first refusal of the request, the pause starts again at
 * FIRST_PAUSE_NS.
 */
static void again_begin(struct client *client, uint64_t since_ns)
{
    struct again *again = client->extra->again;
    if (again->pause_ns == 0 || since_ns == again_now_ns(client))
        again->pause_ns = FIRST_PAUSE_NS;
    client->lane_user.is_returning = true;
    client->lane_user.wants_idle = true;
    client_wait(client, WAIT_AGAIN);
    list_push(&client->front->agains, &again->in_front);
    again->over_ns = since_ns + client->front->rules->failover_wait_ns;
    again_look_later(client);
}

/*
 * Ends the wait: no returned request is left. WAIT_LOGIN ends too, since the next request waits for
 * its own proof. If the client has an outage, the outage continues for the next request.
 */
static void again_end(struct client *client)
{
    struct again *again = client->extra->again;
    client->lane_user.is_returning = false;
    list_take(&again->in_front);
    alarm_stop(again_alarms_of(client), &again->alarm);
    client_resume(client, WAIT_AGAIN);
    client_resume(client, WAIT_LOGIN);
}

/* ---- requests that come back ---- */

/* True if the client may get replies: it is open, or leaves by its own wish. */
static bool is_served(const struct client *client)
{
    return client->state == CLIENT_OPEN ||
           (client->state == CLIENT_DRAINING && client->reason == CLOSED_BY_CLIENT);
}

/*
 * True if the call may wait for a master. False if requests that came at the same time as the call
 * or later have already waited in vain.
 */
static bool again_may_wait(struct client *client, const struct call *call)
{
    const struct again *again = client_extra(client)->again;
    uint64_t told_ns = again != NULL ? again->told_ns : 0;
    return is_served(client) && client->front->rules->failover_wait_ns > 0 &&
           !(told_ns != 0 && call->arrived_ns <= told_ns);
}

/*
 * Moves the oldest unanswered request to `returned`. NULL: out of memory, and the client is closed.
 */
static struct returned_call *again_add(struct client *client, const struct call *call)
{
    struct extra *extra = client->extra;
    struct returned *returned = &extra->again->returned;
    const struct kept *kept = extra->unanswered.first;
    struct returned_call *back =
        returned_add(returned, again_pool_of(client), unanswered_oldest(&extra->unanswered));
    if (back == NULL) {
        client_close_starved(client);
        return NULL;
    }
    back->tag = tags_at(&client->lane_user.lane->tags, 0);
    back->arrived_ns = call->arrived_ns;
    back->waited_us = call->waited_us;
    back->argument = call->argument;
    back->flags = call->flags & (uint8_t)~CALL_ENDS_RUN;
    back->effect = call->effect;
    back->counted = call->counted;
    back->kind = kept->kind;
    back->since_ns = kept->since_ns != 0 ? kept->since_ns : again_now_ns(client);
    unanswered_drop(&extra->unanswered, again_pool_of(client), 1);
    return back;
}

bool again_take_back(struct client *client, const struct call *call, enum not_run row)
{
    struct extra *extra = client->extra;
    if (unanswered_oldest(&extra->unanswered).len == 0 || !again_may_wait(client, call))
        return false;
    struct returned_call *back = need_again(client) != NULL ? again_add(client, call) : NULL;
    if (back == NULL)
        return true;
    back->is_refused = true;
    if (!bytes_add(&back->reply, not_run_text(row), NOT_RUN_ROOM)) {
        client_close_starved(client);
        return true;
    }
    if (!again_is_on(client))
        again_begin(client, back->since_ns);
    return true;
}

/* ---- replies behind returned requests ---- */

static void limit_kept(struct client *client, bool is_kept)
{
    if (is_kept)
        client_limit_unread(client, client->extra->again->returned.bytes);
    else
        client_close_starved(client);
}

/* True if the next reply answers a read that is sent again. */
static bool is_read_again(const struct extra *extra)
{
    const struct kept *kept = extra->unanswered.first;
    return kept != NULL && kept->kind == KEPT_READ && kept->len > 0;
}

/* A read that is sent again is charged for its later reply, not for this reply. */
void again_take_bytes(struct client *client, const char *data, size_t n)
{
    struct extra *extra = client->extra;
    if (!is_read_again(extra))
        charge_bytes_out(client, n, client->lane_user.counted);
    if (!client_is_closed(client))
        limit_kept(client, returned_read(&extra->again->returned, again_pool_of(client),
                                         slice_of(data, n)));
}

void again_put_behind(struct client *client, const char *data, size_t n)
{
    limit_kept(client, returned_say(&client->extra->again->returned, again_pool_of(client),
                                    slice_of(data, n)));
}

void again_answered(struct client *client, const struct call *call)
{
    struct extra *extra = client->extra;
    struct again *again = extra->again;
    bool is_muted = (call->flags & CALL_MUTE) != 0;
    if (is_read_again(extra) && !is_muted) {
        struct returned_call *back = again_add(client, call);
        if (back == NULL)
            return;
        back->counted = 0; /* the call in flight ends now, and is not counted again */
        returned_end_reply(&again->returned);
        return;
    }
    bool is_write = extra->unanswered.first->kind == KEPT_WRITE;
    timing_answered(&client->lane_user, call, 1);
    limit_kept(client, returned_end_behind(&again->returned, again_pool_of(client)));
    unanswered_drop(&extra->unanswered, again_pool_of(client), 1);
    if (is_write && !client_is_closed(client))
        again_pass_on(client);
}

/* ---- sending again ---- */

enum found { FOUND_LANE, FOUND_NONE, FOUND_WAITS, FOUND_GONE };

static void again_describe(struct client *client, const struct returned_call *back,
                           struct request *request)
{
    struct request_scan scan = {0};
    size_t used;
    struct slice bytes = returned_request(back);
    enum scan_result result =
        request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used);
    assert(result == SCAN_FRAME && used == bytes.len);
    (void)result;
    *request = (struct request){.is_again = true};
    describe_request(request, client->front, &scan, bytes);
}

static enum found again_find_lane(struct client *client, struct lane **lane)
{
    struct request request;
    again_describe(client, client->extra->again->returned.first, &request);
    (void)reads_give_up(client);
    for (;;) {
        switch (login_renew(client, false)) {
        case LOGIN_WAITS:
            return FOUND_WAITS;
        case LOGIN_PASSED:
            break;
        case LOGIN_GONE:
            return FOUND_GONE;
        default: /* a half-closed client is leaving, and still gets its replies */
            return FOUND_NONE;
        }
        switch (lane_choice_find(client, &request, lane)) {
        case LANE_NOT_YET:
            return FOUND_WAITS;
        case LANE_NONE:
            return client_is_closed(client) ? FOUND_GONE : FOUND_NONE;
        case LANE_FOUND:
            session_note_lane(client);
            return FOUND_LANE;
        case LANE_UNPROVEN:
            break;
        }
    }
}

/* Sends the request again. False: out of memory, and the client is closed. */
static bool again_send_again(struct client *client, struct lane *lane,
                             const struct returned_call *back)
{
    struct extra *extra = client->extra;
    struct lane_user *lane_user = &client->lane_user;
    const struct slice request = returned_request(back);
    lane_user->arrived_ns = back->arrived_ns;
    lane_user->waited_us = back->waited_us;
    struct kept *kept = NULL;
    if (lane->keeps) {
        kept = unanswered_add(&extra->unanswered, again_pool_of(client), (enum kept_kind)back->kind,
                              request, 1);
        if (kept != NULL)
            kept->since_ns = back->since_ns;
    }
    lane_count_sent(lane_user, SHARED_CALLS_FEW, back->len);
    bool is_noted = kept != NULL || !lane->keeps;
    const uint64_t tag = back->tag | (uint64_t)WAIT_AGAIN << 32;
    struct call *call = is_noted ? lane_call_flow(lane, lane_user, FLOW_ONE, 1, tag) : NULL;
    if (call == NULL) {
        client_close_starved(client);
        return false;
    }
    call->flags = back->flags;
    call->effect = back->effect;
    call->counted = back->counted;
    call->argument = back->argument;
    front_count_fate(client->front, FATE_AGAIN);
    fair_share_note_call(client, timing_command(client->front, (uint32_t)tag), request.len,
                         timing_argc(tag));
    coverage_note_write(client);
    lane_choice_note_sent(client);
    lane_send(lane, lane_user, request.at, request.len);
    return true;
}

static void again_send_all(struct client *client, struct lane *lane)
{
    struct returned now = client->extra->again->returned;
    struct returned_call *back;
    client->extra->again->returned = (struct returned){0};
    again_end(client);
    while ((back = returned_take(&now)) != NULL) {
        bool is_sent = !client_is_closed(client) && again_send_again(client, lane, back);
        if (is_sent && back->behind.len > 0)
            client_answer_now(client, bytes_slice(&back->behind));
        returned_free(back, again_pool_of(client));
    }
}

/* No lane was found: weir looks again after a pause. */
static void again_go_without(struct client *client)
{
    lane_choice_end_refused(client);
    client_forget_refusal(client);
    login_prove_again(client);
    lanes_hurry(&front_default_row(client->front)->lanes);
    again_look_later(client);
}

void again_go_on(struct client *client)
{
    if (!again_is_on(client) || client->state >= CLIENT_CLOSING)
        return;
    if (!is_served(client)) {
        again_pass_on(client);
        return;
    }
    struct again *again = client->extra->again;
    struct lane *lane = NULL;
    bool must_wait =
        client->lane_user.in_flight > 0 || client_waits_for(client, WAIT_LANE | WAIT_LOGIN);
    client->lane_user.wants_idle |= client->lane_user.in_flight > 0;
    if (must_wait || again_now_ns(client) < again->look_ns) {
        again_set_alarm(client, must_wait ? again->over_ns : again->look_ns);
        return;
    }
    switch (again_find_lane(client, &lane)) {
    case FOUND_LANE:
        again_send_all(client, lane);
        break;
    case FOUND_NONE:
        again_go_without(client);
        break;
    case FOUND_WAITS:
        again_set_alarm(client, again->over_ns);
        break;
    case FOUND_GONE:
        break;
    }
}

/* ---- giving up ---- */

static void again_tell(struct client *client, const struct returned_call *back)
{
    bool is_muted = (back->flags & CALL_MUTE) != 0;
    if (back->is_refused) {
        count_add(&front_default_row(client->front)->lanes.base.counts.error_replies, 1);
        front_count_fate(client->front, FATE_REFUSED);
    }
    charge_answered(client, back->counted);
    timing_not_sent(client, back->tag, back->arrived_ns, back->waited_us);
    if (is_muted)
        return;
    charge_bytes_out(client, back->reply.len, back->counted);
    if (!client_is_closed(client))
        client_output(client, back->reply.at, back->reply.len);
}

void again_pass_on(struct client *client)
{
    if (!again_is_on(client))
        return;
    struct again *again = client->extra->again;
    struct returned now = again->returned;
    struct returned_call *back;
    again->returned = (struct returned){0};
    again->told_ns = again_now_ns(client);
    again_end(client);
    while ((back = returned_take(&now)) != NULL) {
        if (!client_is_closed(client))
            again_tell(client, back);
        if (!client_is_closed(client) && back->behind.len > 0)
            client_output(client, back->behind.at, back->behind.len);
        returned_free(back, again_pool_of(client));
    }
    if (!client_is_closed(client) && now.frame.len > 0) {
        if (is_read_again(client->extra))
            charge_bytes_out(client, now.frame.len, 0);
        client_output(client, now.frame.at, now.frame.len);
    }
    returned_clear(&now, again_pool_of(client));
}

void again_stop(struct client *client)
{
    struct again *again = client_extra(client)->again;
    if (again == NULL)
        return;
    client->lane_user.is_returning = false;
    list_take(&again->in_front);
    alarm_stop(again_alarms_of(client), &again->alarm);
    alarms_release(again_alarms_of(client), 1);
    for (const struct returned_call *at = again->returned.first; at != NULL; at = at->next)
        charge_answered(client, at->counted);
    returned_clear(&again->returned, again_pool_of(client));
}

void again_free(struct client *client)
{
    if (client->extra == NULL)
        return;
    free(client->extra->again);
    client->extra->again = NULL;
}

void again_wake(struct front *front)
{
    for (struct list *at = front->agains.next; at != &front->agains; at = at->next) {
        struct again *again = container_of(at, struct again, in_front);
        again->look_ns = 0;
        again->pause_ns = FIRST_PAUSE_NS;
        link_wake(&again->client->link);
    }
}
