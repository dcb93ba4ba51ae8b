#include "front/client/connection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/client/charge.h"
#include "front/client/again.h"
#include "front/client/binding.h"
#include "front/cluster/compound.h"
#include "front/cluster/carry.h"
#include "front/commands/decisions.h"
#include "front/client/drain.h"
#include "front/client/feed.h"
#include "front/cluster/gather.h"
#include "front/client/half_close.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/route/outage.h"
#include "front/route/fair_share.h"
#include "front/route/places.h"
#include "front/client/unbound.h"
#include "front/route/reads.h"
#include "front/client/remains.h"
#include "front/session/resubscribe.h"
#include "front/client/session.h"
#include "front/session/stateful.h"
#include "front/session/subscribe.h"
#include "front/route/taken.h"
#include "front/client/timeouts.h"
#include "front/client/timing.h"
#include "upstream/lane/passthrough_end.h"
#include "upstream/lane/slow_reader.h"

static struct client *client_of_link(struct link *link)
{
    return container_of(link, struct client, link);
}

static struct client *client_of_lane_user(struct lane_user *lane_user)
{
    return container_of(lane_user, struct client, lane_user);
}

/* ---- callbacks of the lane ---- */

static void connection_on_run_end(struct lane_user *lane_user)
{
    struct client *client = client_of_lane_user(lane_user);
    struct extra *extra = client->extra;
    replies_end(&extra->replies, &extra->own);
    replies_flush(&extra->replies, client_put_out, client);
}

/* Charges bytes for the client. False: no request waits for the bytes, or the client is closed. */
static bool connection_note_bytes(struct client *client, size_t n)
{
    if (client_is_leaving(client) && !client_is_owed(client))
        return false;
    charge_bytes_out(client, n, client->lane_user.counted);
    if (client_is_closed(client))
        return false;
    client_note_active(client);
    return true;
}

/*
 * True if a limit on bytes paces the reading of replies from Redis. A half-closed client sends no
 * more requests: its replies are charged as they come, and the next requests of its subject wait.
 */
static bool must_pay_first(const struct client *client)
{
    return !client->lane_user.is_gone && charge_is_in_debt(client, UNIT_BYTES_OUT);
}

/*
 * True if the client reads more slowly than replies come. A client is not slow while feed.c does
 * not read its requests. Otherwise a library that writes a whole pipeline before it reads a reply
 * would wait for ever.
 */
static bool is_slow(const struct client *client)
{
    return client->link.is_congested &&
           (!client->link.is_paused || client_waits_for(client, WAIT_MEMORY));
}

/*
 * Stops the reading of the private lane of a slow client, so Redis sees the back-pressure of a
 * client without weir. The lane of a client in debt by a limit on bytes is not read either.
 */
static void connection_stop_if_slow(struct client *client)
{
    struct lane_user *lane_user = &client->lane_user;
    lane_user->is_paying = must_pay_first(client);
    if (!client_has_own_lane(client) || lane_user->lane == NULL)
        return;
    if (lane_user->is_paying || is_slow(client))
        slow_reader_begin(lane_user->lane);
    if (lane_user->wants_idle && client->link.is_congested)
        /* replies are left in Redis until the client reads; see has_many_replies_coming */
        client_resume(client, WAIT_REPLIES);
}

static void connection_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct client *client = client_of_lane_user(lane_user);
    const struct extra *extra = client->extra;
    if (!connection_note_bytes(client, n))
        return;
    /* a message that has been sent in part is not gathered */
    if (extra != NULL && extra->gather != NULL && lane_user->lane->framing != FRAMING_UNSOLICITED &&
        gather_take(client, data, n))
        return;
    if (extra == NULL || (replies_are_idle(&extra->replies) && extra->spread == NULL))
        client_output(client, data, n);
    else
        client_output_from(client, &client->extra->own, data, n,
                           !lane_is_in_frame(lane_user->lane));
    connection_stop_if_slow(client);
}

static void connection_on_unheard(struct lane_user *lane_user, size_t n)
{
    struct client *client = client_of_lane_user(lane_user);
    if (connection_note_bytes(client, n))
        connection_stop_if_slow(client);
}

/*
 * Returns the link to which replies may be spliced. NULL: replies are gathered or wait behind
 * earlier replies, or the client leaves.
 */
static struct link *connection_on_passing(struct lane_user *lane_user)
{
    struct client *client = client_of_lane_user(lane_user);
    const struct extra *extra = client_extra(client);
    bool passes =
        !client_is_leaving(client) && extra->gather == NULL && replies_are_idle(&extra->replies);
    return passes ? &client->link : NULL;
}

static void connection_on_passed(struct lane_user *lane_user, size_t n)
{
    struct client *client = client_of_lane_user(lane_user);
    if (!connection_note_bytes(client, n))
        return;
    client_limit_unread(client, 0);
    connection_stop_if_slow(client);
}

static void connection_on_resume(struct lane_user *lane_user, enum lane_user_wait what)
{
    static const enum client_wait reasons[] = {[LANE_USER_HAS_REPLIES] = WAIT_REPLIES,
                                               [LANE_USER_HAS_LANE] = WAIT_LANE,
                                               [LANE_USER_HAS_SHARE] = WAIT_SHARE};
    client_resume(client_of_lane_user(lane_user), reasons[what]);
}

static void connection_on_answer(struct lane_user *lane_user, const struct call *call,
                                 const struct glimpse *reply)
{
    stateful_answered(client_of_lane_user(lane_user), call, reply);
}

static void connection_on_counted(struct lane_user *lane_user, uint8_t counted)
{
    charge_answered(client_of_lane_user(lane_user), counted);
}

static void connection_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    if (!lane_user->is_paying)
        client_limit_unread(client_of_lane_user(lane_user), bytes);
}

static void connection_on_refused(struct lane_user *lane_user, enum lane_end end,
                                  struct slice reply)
{
    struct client *client = client_of_lane_user(lane_user);
    if (end == END_LOGIN_REFUSED && session_doubt(client))
        return;
    lane_choice_note_refused(client);
    client_forget_refusal(client);
    struct extra *extra = client_want_extra(client);
    if (extra != NULL) /* without extra.refusal the client gets weir's own words */
        extra->refusal = client_copy_refusal(end, reply);
}

static void connection_on_heavy(struct lane_user *lane_user)
{
    struct client *client = client_of_lane_user(lane_user);
    client_note_heavy(client);
    lane_choice_note_huge(client);
}

static void connection_on_blocking(struct lane_user *lane_user)
{
    struct client *client = client_of_lane_user(lane_user);
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(
        LOG_SITE_CLIENT_CLOSED, LOG_WARN,
        "client %s is closed before output-limit: it does not read a reply that other clients wait behind",
        name);
    client_close_for(client, CLOSED_BUFFER);
}

/*
 * True if nothing is lost with an operator's lane: no call, pin, transaction, large request or
 * subscription. The operator's connection then survives an outage.
 */
static bool may_outlive(const struct client *client, const struct lane *lane)
{
    return client_may_administer(client) && client->lane_user.in_flight == 0 && client->pins == 0 &&
           !transaction_is_open(&client->transaction) && client_extra(client)->passage == NULL &&
           !lane_is_subscribed(lane) && !client_is_subscribed(client) && !lane_is_monitoring(lane);
}

/*
 * Called for each of the client's calls on a lost lane. An operator that stays keeps its position
 * in the fair queue.
 */
static void connection_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct client *client = client_of_lane_user(lane_user);
    if (carry_outlives_lane(client)) {
        lane_choice_abandon(client);
        link_wake(&client->link);
        return;
    }
    bool stays = !client_is_leaving(client) && may_outlive(client, lane);
    if (!stays && lane_user->in_flight > 0)
        front_count_fate(client->front, FATE_LOST);
    again_pass_on(client);
    if (!stays)
        places_leave(client);
    lane_choice_abandon(client);
    if (stays)
        return;
    fair_share_stop(client);
    client_cut_for(client, CLOSED_UPSTREAM);
}

static void on_place_lost(struct client *client)
{
    front_count_fate(client->front, FATE_LOST);
    places_leave(client);
    lane_choice_abandon(client);
    fair_share_stop(client);
    client_cut_for(client, CLOSED_UPSTREAM);
}

/*
 * True if weir may send AUTH on the client's lane. False where Redis would queue or refuse AUTH, or
 * where a push message may precede the reply (upstream/lane/timers.c).
 */
static bool may_log_in(const struct lane_user *lane_user)
{
    const struct client *client =
        container_of((struct lane_user *)(uintptr_t)lane_user, struct client, lane_user);
    return client->state == CLIENT_OPEN && transaction_is_none(&client->transaction) &&
           !pin_has(client, PIN_PASSTHROUGH) && !pin_has(client, PIN_TRACKING) &&
           !client_waits_for(client, WAIT_LOGIN) && client_extra(client)->passage == NULL;
}

/* ---- on an upstream of several servers, where requests may come back (again.h) ---- */

static void on_kept_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct client *client = client_of_lane_user(lane_user);
    if (!again_is_on(client)) {
        if (!carry_take_bytes(client, data, n, connection_on_bytes))
            connection_on_bytes(lane_user, data, n);
        return;
    }
    client_note_active(client);
    again_take_bytes(client, data, n);
}

/*
 * Notes n replies for reads from replicas. Only replies to reads and writes say something about
 * Redis' keys.
 */
static void connection_note_answered(struct client *client, uint32_t n)
{
    bool reads = false;
    bool writes = false;
    uint32_t left = n;
    for (const struct kept *at = client->extra->unanswered.first; at != NULL && left > 0;
         at = at->next) {
        reads |= at->kind == KEPT_READ;
        writes |= at->kind == KEPT_WRITE;
        left -= at->n_left < left ? at->n_left : left;
    }
    if (reads)
        read_side_note_answered(client, false);
    if (writes)
        read_side_note_answered(client, true);
}

static void on_kept_timed(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    struct client *client = client_of_lane_user(lane_user);
    if (!lane_user->lane->keeps) {
        timing_answered(lane_user, call, n);
        return;
    }
    if (read_side_of(client) != NULL)
        connection_note_answered(client, n);
    if (again_is_on(client)) {
        again_answered(client, call);
        return;
    }
    timing_answered(lane_user, call, n);
    unanswered_drop(&client->extra->unanswered, &client->front->loop->pool, n);
}

static bool connection_on_not_run(struct lane_user *lane_user, const struct call *call,
                                  enum not_run row, struct slice reply)
{
    (void)reply;
    if (row >= NOT_RUN_FIXED)
        return false;
    reads_note_refused(client_of_lane_user(lane_user));
    return again_take_back(client_of_lane_user(lane_user), call, row);
}

/* Callbacks that lane_user_ops and lane_user_ops_kept have in common. */
#define LANE_USER_OPS                                                                              \
    .on_unheard = connection_on_unheard, .on_passing = connection_on_passing,                      \
    .on_passed = connection_on_passed, .on_run_end = connection_on_run_end,                        \
    .on_answer = connection_on_answer, .on_counted = connection_on_counted,                        \
    .on_refused = connection_on_refused, .on_heavy = connection_on_heavy,                          \
    .on_unread = connection_on_unread, .on_blocking = connection_on_blocking,                      \
    .on_lost = connection_on_lost, .on_resume = connection_on_resume, .may_log_in = may_log_in,    \
    .share = session_lane_share, .audit = session_audit_lane,                                      \
    .to_link =                                                                                     \
        (ptrdiff_t)offsetof(struct client, link) - (ptrdiff_t)offsetof(struct client, lane_user)

static const struct lane_user_ops lane_user_ops = {LANE_USER_OPS, .on_bytes = connection_on_bytes,
                                                   .on_timed = timing_answered};
static const struct lane_user_ops lane_user_ops_kept = {LANE_USER_OPS, .on_bytes = on_kept_bytes,
                                                        .on_timed = on_kept_timed,
                                                        .on_not_run = connection_on_not_run};

/* ---- closing ---- */

/*
 * Ends the passthrough lane behind the replies that Redis still owes. For a half-closed client
 * Redis sends the replies that it can write at once.
 */
static void end_passthrough(struct client *client)
{
    struct lane *lane = pin_has(client, PIN_PASSTHROUGH) ? client->lane_user.lane : NULL;
    if (lane == NULL)
        return;
    if (client->is_eof)
        lane_part(lane);
    else
        passthrough_end_begin(lane);
}

/*
 * Closes a client that leaves, once all its requests are answered. The private lane is closed
 * before the last reply goes out. After its last reply, the client may therefore rely on the end of
 * this connection when it uses another one.
 */
static void finish_when_answered(struct client *client)
{
    fair_share_stop(client);
    end_passthrough(client);
    again_go_on(client);
    places_go_on(client);
    compounds_go_on(client);
    carry_go_on(client);
    if (client_is_owed(client)) {
        client->lane_user.wants_idle = true;
        client_want_idle(client);
        return;
    }
    if (client_extra(client)->n_asked > 0)
        return;
    if (client_has_own_lane(client))
        lane_choice_abandon(client);
    subscribe_leave(client);
    if (client->output == OUTPUT_DROPPED)
        client_close(client);
    else
        link_finish(&client->link);
}

static void drop_leases(struct client *client)
{
    lease_drop(&client->shared);
    if (client->extra != NULL)
        lease_drop(&client->extra->kept);
}

static void on_close(struct client *client, enum client_state was)
{
    struct lane *lane = client->lane_user.lane;
    if (lane != NULL && (client_has_own_lane(client) || client->lane_user.in_flight > 0))
        remains_leave(client);
    places_leave(client);
    drop_leases(client);
    subscribe_leave(client);
    read_side_stop(client);
    login_end(client);
    outage_end(client);
    again_stop(client);
    compounds_leave(client);
    carry_stop(client);
    list_take(&client->lane_user.waiting);
    timeouts_leave(client, was);
    memory_pressure_forget(client);
    if (client->lane_user.absorbed > 0)
        slow_reader_absorbed(&client->front->nodes.worker_lanes, &client->lane_user);
    const struct extra *extra = client_extra(client);
    if (extra->ending != NULL)
        prober_cancel(&extra->ending->probe);
    if (extra->admin_command != NULL)
        extra->admin_command->client = NULL;
    decisions_cancel(client);
    if (client->reason == CLOSED_UPSTREAM)
        binding_note_outage(client);
    binding_leave(client);
    front_leave(client->front, client_listen_address(client));
    client_drain_left(client->front);
    count_add(&client->front->counts.listeners[client_listen_address(client)->index]
                   .closed[client->reason],
              1);
}

static void drop_extra(struct client *client)
{
    if (client->extra == NULL)
        return;
    client_keep_nothing(client);
    read_side_free(client->extra->read_side);
    again_free(client);
    carry_free(client);
    replies_clear(&client->extra->replies);
    places_free(client);
    compounds_free(client);
    subscribe_free(client);
    gather_drop(client);
    free(client->extra->passage);
    free(client->extra->ending);
    free(client->extra->refusal);
    free(client->extra->header);
    free(client->extra);
    client->extra = NULL;
}

static void connection_on_closed(struct link *link)
{
    struct client *client = client_of_link(link);
    feed_free(client);
    drop_leases(client); /* the client may have been closed while it looked for a lane */
    drop_extra(client);
    session_free(client);
    free(client);
}

/* ---- callbacks of the connection ---- */

/* The PROXY header and the TLS handshake are done: requests may follow. */
static void connection_admit(struct client *client)
{
    client_admit(client);
    session_begin(client);
}

static void handshake_failed(struct client *client, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_TLS, LOG_WARN, "client %s on %s is closed: no TLS: %s", name,
           client_listen_address(client)->listener, why);
    count_add(&client->front->counts.listeners[client_listen_address(client)->index]
                   .rejected[REJECTED_TLS],
              1);
    client_close_for(client, CLOSED_HANDSHAKE);
}

/*
 * Begins TLS; `n` bytes of the handshake have already come. When the handshake has ended, weir
 * admits the client.
 */
static void secure(struct client *client, const char *data, size_t n)
{
    timeouts_begin_handshake(client);
    if (!link_secure(&client->link, client->front->rules->tls, data, n))
        handshake_failed(client, "out of memory");
}

/*
 * The client's address is known, and `n` bytes have come behind the PROXY header. Returns how many
 * of these bytes are requests.
 */
static size_t connection_begin(struct client *client, const char *data, size_t n)
{
    if (!binding_arrive(client))
        return 0;
    if (client_listen_address(client)->is_tls) {
        secure(client, data, n);
        return 0;
    }
    connection_admit(client);
    return n;
}

static void connection_on_data(struct link *link, const char *data, size_t n)
{
    struct client *client = client_of_link(link);
    client_note_active(client);
    if (client_is_shaking(client)) {
        size_t used = proxied_take(client, data, n);
        data += used;
        n -= used;
        if (!proxied_waits(client) && !client_is_closed(client)) {
            timeouts_end_handshake(client);
            if (!client_listen_address(client)->is_tls)
                client_admit(client);
            n = binding_move(client) ? connection_begin(client, data, n) : 0;
        }
    }
    if (n > 0 && !client_is_closed(client))
        feed(client, data, n);
    if (client->front->drain.is_on)
        client_drain_look(client);
}

static void on_link_passed(struct link *link, size_t n)
{
    struct client *client = client_of_link(link);
    client_note_active(client);
    feed_passed(client, n);
    if (client->front->drain.is_on)
        client_drain_look(client);
}

/* Reading of the client's lanes goes on, unless the client is in debt by a limit on bytes. */
static void connection_catch_up(struct client *client)
{
    client->lane_user.is_paying = must_pay_first(client);
    if (!client->lane_user.is_paying &&
        (client_has_own_lane(client) || client->lane_user.in_flight > 0))
        lane_catch_up(&client->lane_user);
    places_catch_up(client);
}

static void connection_on_wake(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client_is_closed(client))
        return;
    if (client->lane_user.is_paying) {
        /*
         * while feed.c reads no requests, the client does not count as slow, and its lane goes on
         */
        client->lane_user.is_paying = must_pay_first(client);
        if (!is_slow(client))
            connection_catch_up(client);
    }
    if (client->state == CLIENT_CLOSING)
        return;
    if (client->state == CLIENT_DRAINING) {
        finish_when_answered(client);
        half_close_check(client);
        return;
    }
    client_resume_woken(client, WAIT_WORKER);
    again_go_on(client);
    places_go_on(client);
    compounds_go_on(client);
    carry_go_on(client);
    lane_choice_release(client);
    feed_again(client);
    resubscribe_go_on(client);
    half_close_check(client);
    if (client->front->drain.is_on)
        client_drain_look(client);
}

/* A half-closed client reads no more. Requests that arrived whole before are still run. */
static void go_on_unheard(struct client *client)
{
    client_drop_output(client);
    if (client->lane_user.absorbed > 0)
        slow_reader_absorbed(&client->front->nodes.worker_lanes, &client->lane_user);
    connection_catch_up(client);
    subscribe_catch_up(client);
    if (client_is_leaving(client))
        finish_when_answered(client);
    else
        half_close_check(client);
}

static void on_end_ahead(struct link *link)
{
    struct client *client = client_of_link(link);
    half_close_foresee(client);
    if (client->lane_user.is_paying)
        connection_catch_up(client);
}

static void connection_on_end(struct link *link, int status)
{
    struct client *client = client_of_link(link);
    if (client->is_eof && !pin_has(client, PIN_PASSTHROUGH) && client->state != CLIENT_CLOSING &&
        status != 0) {
        go_on_unheard(client);
        return;
    }
    if (status != UV_EOF || client_is_parted(client) || client_is_shaking(client)) {
        client_close(client);
        return;
    }
    half_close_begin(client);
    if (client->lane_user.is_paying && !client_is_closed(client))
        connection_catch_up(client);
    if (client_is_leaving(client) && !client_is_closed(client))
        end_passthrough(client);
}

/*
 * client_part came too late: the requests that came before the shutdown are served, and the end of
 * the connection follows.
 */
static void connection_on_late(struct link *link)
{
    client_return(client_of_link(link));
}

static void connection_on_drained(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client->lane_user.absorbed > 0)
        slow_reader_absorbed(&client->front->nodes.worker_lanes, &client->lane_user);
    connection_catch_up(client);
    subscribe_catch_up(client);
}

/* The TLS handshake has ended. */
static void connection_on_connected(struct link *link, int status)
{
    struct client *client = client_of_link(link);
    timeouts_end_handshake(client);
    if (status != 0) {
        handshake_failed(client, link_why(link, status));
        return;
    }
    connection_admit(client);
    (void)binding_arrive(client);
}

static const struct link_ops link_ops = {
    .on_connected = connection_on_connected,
    .on_room = feed_room,
    .on_data = connection_on_data,
    .on_passing = feed_passing,
    .on_passed = on_link_passed,
    .on_end_ahead = on_end_ahead,
    .on_end = connection_on_end,
    .on_wake = connection_on_wake,
    .on_late = connection_on_late,
    .on_drained = connection_on_drained,
    .on_closed = connection_on_closed,
};

const struct client_ops connection_client_ops = {
    .log_closed = session_log_closed,
    .answer_behind = decisions_answer_behind,
    .put_behind = again_put_behind,
    .on_not_run = taken_begin,
    .on_place_lost = on_place_lost,
    .by_keys = compound_by_keys,
    .on_leaving = finish_when_answered,
    .on_close = on_close,
};

void client_open(struct client *client, struct front *front, int fd, const struct link_peer *peer,
                 const struct listen_address *listen_address)
{
    client->front = front;
    client->generation = front->generation;
    client->listen_address = listen_address->number;
    client->state =
        listen_address->has_proxy_header || listen_address->is_tls ? CLIENT_SHAKING : CLIENT_OPEN;
    client->lane_user.ops =
        upstream_keeps(front->nodes.worker_lanes.upstream) ? &lane_user_ops_kept : &lane_user_ops;
    list_init(&client->lane_user.waiting);
    list_init(&client->in_front);
    link_adopt(&client->link, front->loop, RANK_CLIENT, fd, peer, &link_ops);
    timeouts_enter(client);
    if (!binding_enter(client) || !reads_open(client))
        return;
    if (!listen_address->has_proxy_header)
        connection_begin(client, "", 0);
    else if (proxied_begin(client))
        timeouts_begin_handshake(client);
}
