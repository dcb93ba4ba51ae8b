#include "front/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "front/account.h"
#include "front/decisions.h"
#include "front/feed.h"
#include "front/effect.h"
#include "front/gather.h"
#include "front/login.h"
#include "front/lane_choice.h"
#include "front/memory_pressure.h"
#include "front/session.h"
#include "front/timing.h"
#include "upstream/deliver.h"
#include "upstream/stall.h"

/* With what the allocator adds, 448 bytes for each idle client. */
_Static_assert(sizeof(struct client) <= 440, "what few clients need belongs into struct extra");

static struct client *client_of_link(struct link *link)
{
    return container_of(link, struct client, link);
}

static struct client *client_of_rider(struct rider *rider)
{
    return container_of(rider, struct client, rider);
}

bool client_is_closed(const struct client *client)
{
    return link_is_closed(&client->link);
}

/* NULL: out of memory. */
static struct extra *make_extra(struct client *client)
{
    if (client->extra == NULL && (client->extra = calloc(1, sizeof *client->extra)) != NULL) {
        list_init(&client->extra->asked);
        replies_init(&client->extra->replies, &client->front->loop->pool);
    }
    return client->extra;
}

struct extra *client_need_extra(struct client *client)
{
    struct extra *extra = make_extra(client);
    if (extra == NULL)
        client_close_starved(client);
    return extra;
}

void client_hold(struct client *client)
{
    client->is_held = true;
}

void client_go_on(struct client *client)
{
    client->is_held = false;
    link_wake(&client->link);
}

void client_note_heavy(struct client *client)
{
    struct extra *extra = make_extra(client);
    if (extra != NULL)
        extra->heavy_until_ns = client->front->loop->now_ns + HEAVY_NS;
}

/* ---- replies, in the client's order ---- */

static void limit_unread(struct client *client, uint64_t more)
{
    uint64_t waiting = link_pending(&client->link) + replies_bytes(&client_extra(client)->replies) + more;
    if (waiting > client->front->rules->output_limit_bytes && !client_is_closed(client)) {
        char name[SESSION_TEXT];
        session_print(client, name);
        log_at(LOG_SITE_CLIENT_CLOSED, LOG_WARN,
               "client %s is closed: %" PRIu64 " bytes of replies are unread, more than output-limit", name, waiting);
        client_close_for(client, CLOSED_BUFFER);
    }
}

void client_output(struct client *client, const char *data, size_t n)
{
    link_write(&client->link, data, n);
    limit_unread(client, 0);
}

static bool is_in_message(const struct client *client)
{
    return client->has_private_lane && client->rider.lane != NULL && lane_is_in_message(client->rider.lane);
}

/* Is there something that it has to hear before it leaves? */
static bool is_owed(const struct client *client)
{
    return client->rider.in_flight > 0 ||
           (client->has_private_lane && client->rider.lane != NULL && client->rider.lane->ends_run);
}

void client_answer(struct client *client, struct slice reply)
{
    if (reply_mode_is_deaf(&client->reply_mode))
        return;
    if (client_extra(client)->n_asked > 0)
        decisions_answer_behind(client, reply);
    else
        client_answer_now(client, reply);
}

void client_answer_now(struct client *client, struct slice reply)
{
    if (client->is_raw) {
        char name[SESSION_TEXT];
        session_print(client, name);
        log_at(LOG_SITE_CLIENT_CLOSED, LOG_WARN,
               "client %s is closed: an answer of weir's has no place among its replies", name);
        client_close(client);
        return;
    }
    if (client->rider.in_flight == 0 && !is_in_message(client)) {
        client_output(client, reply.at, reply.len);
        return;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    struct rider *rider = &client->rider;
    bool has_run =
        !lane_end_run(rider) || replies_begin(&extra->replies, &extra->own, deliver_is_in_frame_of(rider->lane, rider));
    if (has_run && replies_say(&extra->replies, reply))
        limit_unread(client, 0);
    else
        client_close_starved(client);
}

static bool put_out(void *arg, const char *data, size_t n)
{
    struct client *client = arg;
    client_output(client, data, n);
    return !client_is_closed(client);
}

static void put_in_order(struct client *client, const struct rider *rider, const char *data, size_t n)
{
    struct extra *extra = client->extra;
    switch (replies_take(&extra->replies, &extra->own, data, n, !rider->lane->is_in_frame)) {
    case REPLIES_PASS:
        client_output(client, data, n);
        break;
    case REPLIES_KEPT:
        limit_unread(client, 0);
        break;
    case REPLIES_FULL:
        client_close_starved(client);
        break;
    }
    if (!client_is_closed(client))
        replies_flush(&extra->replies, put_out, client);
}

static void on_run_end(struct rider *rider)
{
    struct client *client = client_of_rider(rider);
    struct extra *extra = client->extra;
    replies_end(&extra->replies, &extra->own);
    replies_flush(&extra->replies, put_out, client);
}

static void on_bytes(struct rider *rider, const char *data, size_t n)
{
    struct client *client = client_of_rider(rider);
    if (client->is_leaving && !is_owed(client))
        return;
    account_bytes_out(client, n, rider->counted);
    if (client_is_closed(client))
        return;
    timeouts_note_active(client);
    /* A message of which a part has gone out already goes on. */
    if (client_extra(client)->gather != NULL && !rider->lane->is_unasked && gather_take(client, data, n))
        return;
    if (replies_are_idle(&client_extra(client)->replies))
        client_output(client, data, n);
    else
        put_in_order(client, rider, data, n);
    /* A slow reader stops its own lane, and Redis sees what it would see without weir; so does who must read slowly. */
    rider->is_paying = account_is_paying(client, UNIT_BYTES_OUT);
    if (client->has_private_lane && (client->link.is_congested || rider->is_paying) && rider->lane != NULL)
        stall_begin(rider->lane);
}

static void on_answer(struct rider *rider, const struct call *call, const struct glimpse *reply)
{
    effect_apply(client_of_rider(rider), call, reply);
}

static void on_counted(struct rider *rider, uint8_t counted)
{
    account_answered(client_of_rider(rider), counted);
}

static void on_unread(struct rider *rider, uint64_t bytes)
{
    if (!rider->is_paying)
        limit_unread(client_of_rider(rider), bytes);
}

void client_forget_refusal(struct client *client)
{
    if (client->extra == NULL)
        return;
    free(client->extra->refusal);
    client->extra->refusal = NULL;
}

static void on_refused(struct rider *rider, struct slice reply)
{
    struct client *client = client_of_rider(rider);
    lane_choice_note_refused(client);
    client_forget_refusal(client);
    struct extra *extra = reply.len > 0 ? make_extra(client) : NULL;
    if (extra != NULL) /* else, or without memory, weir's own words do */
        extra->refusal = strndup(reply.at, reply.len);
}

static void on_transaction(struct rider *rider, const char *data, size_t n)
{
    struct members *selects = client_extra(client_of_rider(rider))->queued.selects;
    if (selects != NULL)
        members_feed(selects, data, n);
}

static void on_heavy(struct rider *rider)
{
    struct client *client = client_of_rider(rider);
    client_note_heavy(client);
    lane_choice_note_huge(client);
}

static void on_blocking(struct rider *rider)
{
    struct client *client = client_of_rider(rider);
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_CLIENT_CLOSED, LOG_WARN,
           "client %s is closed before output-limit: other clients wait behind a reply that it does not read", name);
    client_close_for(client, CLOSED_BUFFER);
}

static void on_lost(struct rider *rider)
{
    client_close_for(client_of_rider(rider), CLOSED_UPSTREAM);
}

/* An address stands for all who come from it, whoever they say they are. */
static struct room_share share(const struct rider *rider)
{
    const struct client *client = container_of((struct rider *)(uintptr_t)rider, struct client, rider);
    const struct hash_key key = client->front->settings->share_key;
    struct client_address address = proxied_address(client);
    char ip[IP_TEXT_MAX];
    struct slice text = slice_of(ip, address.ip.family != 0 ? ip_print(&address.ip, ip) : 0);
    return room_share_of(client->subject != NULL ? client->subject->hash : 0, text.len > 0 ? hash_bytes(key, text) : 0);
}

/*
 * A lane that carries its requests is its own, or one for its session, or a shared one for HELLO and SELECT to be
 * judged.
 */
static void audit(const struct rider *rider, const struct lane *lane)
{
    const struct client *client = container_of((struct rider *)(uintptr_t)rider, struct client, rider);
    const struct lane_key key = session_key(client, lane_node(lane));
    if (lane->role == LANE_PRIVATE) {
        assert(client->has_private_lane);
    } else {
        assert(lane->role == LANE_SHARED && !client->has_private_lane);
        assert(login_eq(lane->key.login, key.login) && (key.login != NULL || lane->key.epoch == key.epoch));
        assert(lane_key_eq(&lane->key, &key) || client->is_held);
        assert(!lane_key_eq(&lane->key, &key) || client->is_held || rider->lane == lane);
    }
}

static const struct rider_ops rider_ops = {
    .on_bytes = on_bytes,
    .on_run_end = on_run_end,
    .on_answer = on_answer,
    .on_transaction = on_transaction,
    .on_counted = on_counted,
    .on_timed = timing_answered,
    .on_refused = on_refused,
    .on_heavy = on_heavy,
    .on_unread = on_unread,
    .on_blocking = on_blocking,
    .on_lost = on_lost,
    .share = share,
    .audit = audit,
    .to_link = (ptrdiff_t)offsetof(struct client, link) - (ptrdiff_t)offsetof(struct client, rider),
};

/* ---- leaving ---- */

static void give_reason(struct client *client, enum ending_reason reason)
{
    if (client->reason == CLOSED_BY_CLIENT)
        client->reason = (uint8_t)reason;
}

/*
 * Redis is told before the client's last answer goes out: what he then does elsewhere counts on his connection's end.
 */
static void finish_when_answered(struct client *client)
{
    if (is_owed(client)) {
        client->rider.wants_idle = true;
        return;
    }
    if (client_extra(client)->n_asked > 0)
        return;
    if (client->has_private_lane)
        lane_choice_abandon(client);
    link_finish(&client->link);
}

void client_leave(struct client *client)
{
    if (client_is_closed(client))
        return;
    client->is_leaving = true;
    link_resume(&client->link); /* what it still sends is thrown away, but its end must be heard */
    finish_when_answered(client);
}

void client_part(struct client *client)
{
    give_reason(client, CLOSED_DRAIN);
    client->is_leaving = client->is_parted = true;
    link_resume(&client->link);
    link_part(&client->link);
}

void client_turn_away(struct client *client)
{
    if (client_is_closed(client))
        return;
    gather_drop(client);
    count_add(&client->front->counts.listeners[client_entrance(client)->index].rejected[REJECTED_RATE], 1);
    client_answer(client, err_text(ERR_MAX_CLIENTS));
    client_leave_for(client, CLOSED_LIMIT);
}

static void drop_leases(struct client *client)
{
    lease_drop(&client->shared);
    if (client->extra != NULL)
        lease_drop(&client->extra->kept);
}

void client_close(struct client *client)
{
    if (client_is_closed(client))
        return;
    link_close(&client->link);
    struct lane *lane = client->rider.lane;
    if (lane != NULL && (client->has_private_lane || client->rider.in_flight > 0))
        lane_forget(lane, &client->rider);
    drop_leases(client);
    login_end(client);
    list_take(&client->rider.waiting);
    timeouts_leave(client);
    memory_pressure_forget(client);
    if (client->rider.absorbed > 0)
        stall_absorbed(&client->front->nodes.commons, &client->rider);
    const struct extra *extra = client_extra(client);
    if (extra->ending != NULL)
        prober_cancel(&extra->ending->probe);
    if (extra->order != NULL)
        extra->order->client = NULL;
    decisions_cancel(client);
    account_leave(client);
    front_leave(client->front, client_entrance(client));
    count_add(&client->front->counts.listeners[client_entrance(client)->index].closed[client->reason], 1);
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
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_MEMORY, LOG_WARN, "client %s is closed: out of memory", name);
    client_close_for(client, CLOSED_MEMORY);
}

void client_drop_extra(struct client *client)
{
    if (client->extra == NULL)
        return;
    replies_clear(&client->extra->replies);
    gather_drop(client);
    free(client->extra->passage);
    free(client->extra->ending);
    free(client->extra->refusal);
    free(client->extra->header);
    queued_forget(&client->extra->queued);
    free(client->extra);
    client->extra = NULL;
}

static void on_closed(struct link *link)
{
    struct client *client = client_of_link(link);
    feed_free(client);
    drop_leases(client); /* it may have been closed while it was looking for a lane */
    client_drop_extra(client);
    session_free(client);
    free(client);
}

/* ---- the end of what it sends ---- */

/* Is a command of its in Redis that may block? */
static bool may_wait_in_redis(const struct client *client)
{
    return client->has_private_lane && client->rider.lane != NULL && lane_may_wait(client->rider.lane);
}

/*
 * What Redis has not answered by now blocks; on a connection of its own the client would be gone. Where it has answered
 * the client has what follows answered too.
 */
static void on_probe_over(struct probe *probe)
{
    struct client *client = container_of(probe, struct ending, probe)->client;
    if (!may_wait_in_redis(client))
        return;
    client->is_leaving =
        true; /* nothing behind it is carried out: its answer would stand where this one's is missing */
    lane_choice_abandon(client);
    link_finish(&client->link);
}

/* A command of a client that has gone must not wait in Redis: it could take an element for nobody. */
static void end_waiting(struct client *client)
{
    if (!may_wait_in_redis(client))
        return;
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    if (extra->ending == NULL) {
        extra->ending = malloc(sizeof *extra->ending);
        if (extra->ending == NULL) {
            client_close_starved(client);
            return;
        }
        extra->ending->client = client;
        extra->ending->probe.on_over = on_probe_over;
        list_init(&extra->ending->probe.in_prober);
    }
    struct lane *lane = prober_start(&nodes_row_of(client->rider.lane)->prober, &extra->ending->probe);
    if (lane != NULL)
        lane_wait(lane, &client->rider);
}

/* All was taken and the peer sends no more. */
static void check_eof(struct client *client)
{
    if (!client->is_eof || client_is_closed(client))
        return;
    feed_end(client);
    end_waiting(client);
    if (!decisions_hurry(client) || account_waits_long(client))
        client_close(client);
    if (client->is_leaving || client_is_closed(client))
        return;
    if (!feed_has_more(client) && !client->is_held && !client->rider.wants_idle)
        client_leave(client);
}

/* ---- the connection ---- */

static void on_data(struct link *link, const char *data, size_t n)
{
    struct client *client = client_of_link(link);
    timeouts_note_active(client);
    if (client->is_announcing) {
        size_t used = proxied_take(client, data, n);
        data += used;
        n -= used;
    }
    if (n > 0 && !client_is_closed(client))
        feed(client, data, n);
    if (client->front->drain.is_on)
        client_drain_look(client);
}

static char *on_room(struct link *link, size_t *room)
{
    return feed_room(client_of_link(link), room);
}

/* Does it read, and may it? Then a lane that has been stopped for it goes on. */
static void catch_up(struct client *client)
{
    client->rider.is_paying = account_is_paying(client, UNIT_BYTES_OUT);
    if (!client->rider.is_paying && (client->has_private_lane || client->rider.in_flight > 0))
        lane_catch_up(&client->rider);
}

static void on_wake(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client_is_closed(client))
        return;
    if (client->rider.is_paying && !client->link.is_congested)
        catch_up(client);
    if (client->is_parted)
        return;
    if (client->is_leaving) {
        finish_when_answered(client);
        check_eof(client);
        return;
    }
    lane_choice_release(client);
    feed_again(client);
    check_eof(client);
    if (client->front->drain.is_on)
        client_drain_look(client);
}

static void on_end(struct link *link, int status)
{
    struct client *client = client_of_link(link);
    if (status != UV_EOF || client->is_raw || client->is_parted || client->is_announcing) {
        client_close(client);
        return;
    }
    client->is_eof = client->rider.is_gone = true;
    nodes_sweep(&client->front->nodes);
    check_eof(client);
}

static void on_drained(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client->rider.absorbed > 0)
        stall_absorbed(&client->front->nodes.commons, &client->rider);
    catch_up(client);
}

static void handshake_failed(struct client *client, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_TLS, LOG_WARN, "client %s on %s is closed: no TLS: %s", name, client_entrance(client)->listener,
           why);
    count_add(&client->front->counts.listeners[client_entrance(client)->index].rejected[REJECTED_TLS], 1);
    client_close_for(client, CLOSED_HANDSHAKE);
}

/* The handshake of TLS has ended. */
static void on_connected(struct link *link, int status)
{
    struct client *client = client_of_link(link);
    timeouts_end_handshake(client);
    if (status == 0)
        client_admit(client);
    else
        handshake_failed(client, link_why(link, status));
}

static const struct link_ops link_ops = {
    .on_connected = on_connected,
    .on_room = on_room,
    .on_data = on_data,
    .on_end = on_end,
    .on_wake = on_wake,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

void client_admit(struct client *client)
{
    session_begin(client);
    client_drain_came(client);
    if (!account_identify(client))
        client_turn_away(client);
}

void client_secure(struct client *client, const char *data, size_t n)
{
    timeouts_begin_handshake(client);
    if (!link_secure(&client->link, client->front->rules->tls, data, n))
        handshake_failed(client, "out of memory");
}

bool client_open(struct client *client, struct front *front, int fd, const struct entrance *entrance)
{
    client->front = front;
    client->entrance = entrance->number;
    client_drain_came(client);
    client->rider.ops = &rider_ops;
    list_init(&client->rider.waiting);
    list_init(&client->in_front);
    if (link_adopt(&client->link, front->loop, RANK_CLIENT, fd, entrance->is_unix, &link_ops) != 0) {
        free(client);
        return false;
    }
    timeouts_enter(client);
    if (entrance->has_proxy_header)
        proxied_begin(client);
    else if (entrance->is_tls)
        client_secure(client, "", 0);
    else
        client_admit(client);
    return true;
}
