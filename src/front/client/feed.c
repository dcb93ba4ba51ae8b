#include "front/client/feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/ladder.h"
#include "front/client/client.h"
#include "front/client/timing.h"
#include "base/err.h"
#include "front/client/charge.h"
#include "front/client/binding.h"
#include "front/route/fast_path.h"
#include "front/route/lane_choice.h"
#include "front/route/fair_share.h"
#include "front/route/route.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"

/* ---- requests ---- */

static void protocol_error(struct client *client, const struct request_scan *scan)
{
    char text[ERR_EXPECTED_DOLLAR_ROOM];
    struct slice reply = err_text(scan->error);
    if (scan->error == ERR_PROTO_EXPECTED_DOLLAR)
        reply = slice_of(text, err_expected_dollar(text, scan->got));
    count_add(&client->front->counts.protocol_errors[scan->error], 1);
    client_answer(client, reply);
    client_leave_for(client, CLOSED_PROTOCOL);
}

/*
 * Limits on the size of the next request. Before a login Redis takes only few arguments. Operators
 * need no login for weir's own commands, which may have more arguments.
 */
static const struct request_limits *limits_of(const struct client *client)
{
    bool may_be_anonymous =
        (client->auth_generation & AUTH_GENERATION_NEEDS_AUTH) != 0 && !client_is_operator(client);
    return may_be_anonymous && session_is_anonymous(client) ? &request_limits_before_auth
                                                            : &request_limits_normal;
}

static bool is_large(const struct request_scan *scan)
{
    return !scan->is_inline && scan->at + scan->bulk_left > LARGE_REQUEST;
}

/*
 * Sets the arrival time of the requests taken from now on: now, or held_ns if the first of them has
 * waited.
 */
static void feed_start_time(struct client *client, const struct intake *in)
{
    client->lane_user.arrived_ns = in->held_ns != 0 ? in->held_ns : client->front->loop->now_ns;
    client->lane_user.waited_us = 0;
    client->front->nodes.worker_lanes.share_us = 0;
    client->front->slow.waits = in->waits;
}

/*
 * Notes that the next request has waited since `since_ns`. Adds the client's present waits to the
 * earlier waits of the request.
 */
static void feed_hold(const struct client *client, struct intake *in, uint64_t since_ns)
{
    in->held_ns = since_ns;
    in->waits = (uint16_t)(client->front->slow.waits | client->waits);
}

static void feed_end_hold(struct intake *in)
{
    in->held_ns = 0;
    in->waits = 0;
}

static void note_held(struct client *client, struct intake *in, bool is_held)
{
    if (is_held) {
        feed_hold(client, in, client->lane_user.arrived_ns);
    } else if (in->held_ns != 0) {
        feed_end_hold(in);
        feed_start_time(client, in); /* for the requests behind the one that waited */
    }
}

static void feed_take_frame(struct intake *in, enum route result)
{
    in->has_frame = result == ROUTE_WAIT;
    if (result != ROUTE_WAIT)
        in->taken = in->scanned;
}

static bool can_go_on(const struct client *client)
{
    return client->state == CLIENT_OPEN && client->waits == 0 &&
           client_extra(client)->passage == NULL;
}

/* Takes requests until one must wait. */
static void take_all(struct client *client, struct intake *in)
{
    const struct request_limits *limits = limits_of(client);
    enum route result = ROUTE_TAKEN;
    struct pace pace;
    feed_start_time(client, in);
    bool waits_for_share = fair_share_must_wait(client);
    if (waits_for_share)
        feed_end_hold(in);
    fair_share_begin(client, &pace);
    while (result == ROUTE_TAKEN && can_go_on(client)) {
        assert(in->taken <= in->scanned && in->scanned <= in->filled && in->filled <= in->capacity);
        bool is_next = in->taken == in->scanned;
        if (is_next && in->taken < in->filled && !fair_share_may_go(client, &pace)) {
            if (pace.is_used)
                feed_start_time(client, in);
            feed_hold(client, in, client->lane_user.arrived_ns);
            break;
        }
        if (waits_for_share && is_next && in->taken < in->filled)
            timing_share_waited(client);
        waits_for_share &= !is_next;
        if (is_next) {
            size_t used;
            const struct slice rest = slice_of(in->data + in->taken, in->filled - in->taken);
            enum route plain = fast_path_run(client, limits, rest, &used, &pace);
            in->scanned += (uint32_t)used;
            in->taken = in->scanned;
            if (plain == ROUTE_STOP)
                break;
        }
        if (is_next && (pace.left == 0 || pace.left_ns <= 0) && in->taken < in->filled)
            continue;
        enum scan_result scanned = SCAN_FRAME;
        if (!in->has_frame) {
            size_t used;
            scanned = request_scan(&in->scan, limits, in->data + in->scanned,
                                   in->filled - in->scanned, &used);
            in->scanned += (uint32_t)used;
        }
        struct slice bytes = slice_of(in->data + in->taken, in->scanned - in->taken);
        if (scanned == SCAN_BAD) {
            protocol_error(client, &in->scan);
            return;
        }
        if (scanned == SCAN_MORE && (bytes.len == 0 || !is_large(&in->scan)))
            break;
        if (scanned == SCAN_MORE) {
            result = route_large(client, &in->scan, bytes);
            if (result == ROUTE_TAKEN)
                in->taken = in->scanned;
            note_held(client, in, result == ROUTE_WAIT);
            continue;
        }
        result = route_request(client, &in->scan, bytes);
        pace_take_one(&pace);
        feed_take_frame(in, result);
        note_held(client, in, result == ROUTE_WAIT);
        limits = limits_of(client);
    }
}

/*
 * Takes requests unless the client waits. Bytes gathered for lanes are copied at the end, because
 * the memory of `in` moves or is freed.
 */
static void feed_take(struct client *client, struct intake *in)
{
    if (client->waits != 0) {
        if (in->held_ns != 0)
            in->waits |= client->waits;
        if (!client_waits_for(client, WAIT_SHARE | WAIT_WORKER))
            /* a share that the fair queue has granted meanwhile is given back */
            fair_share_stop(client);
        return;
    }
    if (client_has_old_rules(client) && !binding_renew(client))
        return;
    take_all(client, in);
    client->front->nodes.worker_lanes.share_us = 0;
    client->front->slow.waits = 0;
    fair_share_end(client);
    if (client_extra(client)->spread != NULL)
        spread_end_batch(client_extra(client)->spread, &client->extra->replies);
    outbox_flush(&client->front->nodes.worker_lanes.outbox);
}

/* ---- large requests ---- */

/*
 * Ends a large request in the middle. Redis waits for the rest on the client's private lane.
 * Earlier requests on that lane are still answered. The lane is closed with the client.
 */
static void abandon_passage(struct client *client)
{
    struct passage *passage = client->extra->passage;
    client->extra->passage = NULL;
    client->lane_user.is_sending = false;
    /* Redis would not have seen this request, so SKIP counts for the next request */
    if (passage->is_skipped)
        reply_mode_untake(&client->reply_mode);
    if (!passage->is_refused)
        lane_choice_withdraw(client);
    if (!client_is_closed(client) && passage->scan.error != ERR_NONE)
        protocol_error(client, &passage->scan);
    free(passage);
    client_leave(client);
}

static void wait_for_lane(struct client *client)
{
    lane_wait(client->lane_user.lane, &client->lane_user);
    client_wait(client, WAIT_LANE);
}

/*
 * Stops reading the rest of the request while Redis takes no bytes, or while the client is in debt
 * for bytes that have passed.
 */
static void hold_passage(struct client *client)
{
    bool is_paying = charge_is_in_debt(client, UNIT_BYTES_IN);
    if (lane_is_congested(client->lane_user.lane))
        wait_for_lane(client);
    if (is_paying) {
        client_wait(client, WAIT_BYTES);
        /* weir delays the request, so request-timeout starts anew */
        timeouts_begin_request(client);
    }
    if (client->waits != 0)
        link_pause(&client->link);
}

/*
 * Passes on a piece of a large request. Returns the bytes used; fewer than `n`: the request has
 * ended.
 */
static size_t feed_pass(struct client *client, const char *data, size_t n)
{
    struct passage *passage = client->extra->passage;
    size_t used;
    enum scan_result result = request_scan(&passage->scan, limits_of(client), data, n, &used);
    if (result == SCAN_BAD) {
        abandon_passage(client);
        return n;
    }
    if (!passage->is_refused && client->lane_user.lane != NULL) {
        if (result == SCAN_FRAME)
            fair_share_note_passed(client, timing_command(client->front, passage->tag), passage);
        lane_send_more(&client->lane_user, data, used, result == SCAN_FRAME);
        charge_bytes_in(client, used, passage->counted);
    }
    if (result == SCAN_FRAME) {
        free(passage);
        client->extra->passage = NULL;
        timeouts_end_request(client);
    } else if (!passage->is_refused && !client_is_closed(client)) {
        hold_passage(client);
    }
    return used;
}

/* ---- bytes that wait in memory ---- */

/* All request bytes kept for one client: a partial request and one read. */
#define INTAKE_READ 69632 /* one read: fits a request with a value of 64 KiB */
#define INTAKE_MAX (2 * INTAKE_READ)
#define INTAKE_MIN_READ 4096 /* less room is not worth a read */
#define FIRST_CAPACITY 1024  /* most partial requests are small */

/* Returns a heap copy of an intake and of its bytes not taken. NULL: out of memory. */
static struct intake *intake_keep(const struct intake *local)
{
    uint32_t left = local->filled - local->taken;
    uint32_t capacity = left > FIRST_CAPACITY ? left : FIRST_CAPACITY;
    struct intake *in = malloc(sizeof *in);
    char *data = malloc(capacity);
    if (in == NULL || data == NULL) {
        free(in);
        free(data);
        return NULL;
    }
    memcpy(data, local->data + local->taken, left);
    *in = *local;
    in->data = data;
    in->capacity = capacity;
    in->filled = left;
    in->scanned = local->scanned - local->taken;
    in->taken = 0;
    return in;
}

/* Moves the bytes not taken to the start of the buffer. */
static void intake_compact(struct intake *in)
{
    if (in->taken == 0)
        return;
    memmove(in->data, in->data + in->taken, in->filled - in->taken);
    in->filled -= in->taken;
    in->scanned -= in->taken;
    in->taken = 0;
}

static void grow_intake(struct intake *in)
{
    uint32_t least = in->filled + INTAKE_MIN_READ;
    uint32_t capacity = in->capacity * 2 < least ? least : in->capacity * 2;
    if (capacity > INTAKE_MAX)
        capacity = INTAKE_MAX;
    char *data = realloc(in->data, capacity);
    if (data == NULL)
        return; /* the next read is small, or has no room */
    in->data = data;
    in->capacity = capacity;
}

/* Makes room for a read, up to INTAKE_MAX and as memory allows. Returns the room in bytes. */
static size_t intake_make_room(struct intake *in)
{
    if (in->capacity - in->filled < INTAKE_MIN_READ)
        intake_compact(in);
    if (in->capacity - in->filled < INTAKE_MIN_READ && in->capacity < INTAKE_MAX)
        grow_intake(in);
    return in->capacity - in->filled;
}

void feed_free(struct client *client)
{
    if (client->intake == NULL)
        return;
    pool_note_less(&client->front->loop->pool, client->intake->capacity);
    free(client->intake->data);
    free(client->intake);
    client->intake = NULL;
}

/* Keeps the bytes not taken of a local intake, which points into the loop's read buffer. */
static void feed_keep(struct client *client, const struct intake *local)
{
    if (local->taken == local->filled || client_is_leaving(client))
        return;
    client->intake = intake_keep(local);
    if (client->intake == NULL)
        client_close_starved(client);
    else
        pool_note_more(&client->front->loop->pool, client->intake->capacity);
}

/*
 * Frees the client's intake if it is empty. Otherwise moves the bytes not taken to the start, if at
 * least half of the bytes are taken.
 */
static void compact(struct client *client)
{
    if (client->intake->taken == client->intake->filled || client_is_leaving(client))
        feed_free(client);
    else if (client->intake->taken >= client->intake->filled - client->intake->taken)
        intake_compact(client->intake);
}

/*
 * Resumes or stops reading. Reading stops when the intake is full, when memory is short, or when a
 * large request must wait.
 */
static void adjust_reading(struct client *client)
{
    if (client_is_leaving(client))
        return;
    uint32_t most = fair_share_must_wait(client) ? INTAKE_READ : INTAKE_MAX - INTAKE_MIN_READ;
    bool is_full = client->intake != NULL && client->intake->filled - client->intake->taken > most;
    bool is_passing = client_extra(client)->passage != NULL;
    bool is_stalled = client_waits_for(client, WAIT_MEMORY);
    if (is_passing && charge_is_in_debt(client, UNIT_BYTES_IN))
        client_wait(client, WAIT_BYTES);
    if (!is_full && !is_stalled && !(is_passing && client->waits != 0)) {
        link_resume(&client->link);
        return;
    }
    link_pause(&client->link);
    if (!client->lane_user.is_gone)
        link_watch_end(&client->link);
    /*
     * connection_stop_if_slow may have stopped the lane; a client that weir does not read is not
     * slow
     */
    if (!is_stalled && !client->lane_user.is_paying && client_has_own_lane(client))
        lane_catch_up(&client->lane_user);
}

/*
 * Begins or ends the wait for the rest of a request. `is_another`: requests were taken since the
 * last call.
 */
static void note_begun(struct client *client, bool is_another)
{
    bool is_waited_for = !list_is_empty(&client->waited_for.in_list);
    const struct intake *in = client->intake;
    bool is_begun = client_extra(client)->passage != NULL ||
                    (in != NULL && !in->has_frame && client->waits == 0);
    is_begun &= !client_is_leaving(client);
    if (is_waited_for && (is_another || !is_begun))
        timeouts_end_request(client);
    if (is_begun && (is_another || !is_waited_for))
        timeouts_begin_request(client);
}

/* ---- callbacks of the connection ---- */

void feed(struct client *client, const char *data, size_t n)
{
    if (client_is_leaving(client))
        return;
    while (n > 0 && client_extra(client)->passage != NULL && !client_is_closed(client)) {
        size_t used = feed_pass(client, data, n);
        data += used;
        n -= used;
    }
    if (n == 0 || client_is_closed(client))
        return;
    bool is_another = true;
    if (client->intake != NULL) {
        uint32_t before = client->intake->taken;
        client->intake->filled += (uint32_t)n;
        feed_take(client, client->intake);
        is_another = client->intake->taken > before;
        if (!client_is_closed(client))
            compact(client);
    } else {
        struct intake local = {
            .data = (char *)(uintptr_t)data, .filled = (uint32_t)n, .capacity = (uint32_t)n};
        feed_take(client, &local);
        feed_keep(client, &local);
    }
    if (client_is_closed(client))
        return;
    note_begun(client, is_another);
    client_tell_top(client);
    adjust_reading(client);
}

struct link *feed_passing(struct link *link, size_t *most)
{
    struct client *client = container_of(link, struct client, link);
    const struct passage *passage = client_extra(client)->passage;
    if (passage == NULL || passage->is_refused || client->intake != NULL ||
        client_is_leaving(client) || client->lane_user.lane == NULL)
        return NULL;
    *most = passage->scan.bulk_left;
    return lane_passing(&client->lane_user);
}

void feed_passed(struct client *client, size_t n)
{
    struct passage *passage = client->extra->passage;
    request_scan_skip(&passage->scan, n);
    lane_passed(&client->lane_user, n);
    charge_bytes_in(client, n, passage->counted);
    if (!client_is_closed(client))
        hold_passage(client);
}

/*
 * While a bulk string passes through, a read may fill the whole buffer, since weir keeps no byte of
 * the bulk string.
 */
char *feed_room(struct link *link, size_t *room)
{
    struct client *client = container_of(link, struct client, link);
    struct intake *in = client->intake;
    if (in == NULL) {
        const struct passage *passage = client_extra(client)->passage;
        uint64_t left = passage != NULL ? passage->scan.bulk_left : 0;
        size_t most = left < *room ? (size_t)left : *room;
        *room = most > INTAKE_READ ? most : INTAKE_READ;
        return NULL;
    }
    uint32_t before = in->capacity;
    *room = intake_make_room(in);
    pool_note_more(&client->front->loop->pool, in->capacity - before);
    if (*room == 0)
        client_close_starved(client);
    return in->data + in->filled;
}

void feed_again(struct client *client)
{
    if (client->intake != NULL) {
        uint32_t before = client->intake->taken;
        feed_take(client, client->intake);
        if (client_is_closed(client))
            return;
        bool is_another = client->intake->taken > before;
        compact(client);
        note_begun(client, is_another);
        client_tell_top(client);
    }
    adjust_reading(client);
}

/* Begins or ends WAIT_MEMORY, in which nothing is read or taken from the client. */
static void feed_stall(struct client *client, bool is_stalled)
{
    if (!is_stalled) {
        client_resume(client, WAIT_MEMORY);
        return;
    }
    client_wait(client, WAIT_MEMORY);
    adjust_reading(client);
}

void feed_end(struct client *client)
{
    if (client_extra(client)->passage != NULL)
        abandon_passage(client);
}

/* ---- short of memory ---- */

static uint64_t unread_bytes(const struct client *client)
{
    return link_pending(&client->link) + replies_bytes(&client_extra(client)->replies);
}

/*
 * True for a client that is never stopped for want of memory. Operators must be served. For a
 * passthrough client, a stop would not reduce the bytes that Redis sends.
 */
static bool is_exempt(const struct client *client)
{
    return client_listen_address(client)->is_admin || pin_has(client, PIN_PASSTHROUGH) ||
           client_is_leaving(client);
}

/*
 * Stops a client with more unread bytes than its share. The client resumes at half of the share, so
 * that it does not stop again at once.
 */
static void judge_client(struct client *client, enum ladder_step step, uint64_t share_bytes)
{
    uint64_t most = client_waits_for(client, WAIT_MEMORY) ? share_bytes / 2 : share_bytes;
    bool is_stalled = step >= LADDER_STALL && !is_exempt(client) && unread_bytes(client) > most;
    if (is_stalled == client_waits_for(client, WAIT_MEMORY))
        return;
    count_add(&client->front->counts.stalled, is_stalled ? 1 : UINT64_MAX);
    feed_stall(client, is_stalled);
}

void memory_pressure_look(struct front *front)
{
    struct memory_pressure *pressure = &front->settings->memory_pressure;
    enum ladder_step step =
        (enum ladder_step)atomic_load_explicit(&pressure->step, memory_order_relaxed);
    uint64_t share_bytes = atomic_load_explicit(&pressure->share_bytes, memory_order_relaxed);
    if (step >= LADDER_SHED)
        pool_shed(&front->loop->pool);
    if (step < LADDER_STALL && count_read(&front->counts.stalled) == 0)
        return;
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next)
        judge_client(container_of(at, struct client, in_front), step, share_bytes);
}

void memory_pressure_forget(struct client *client)
{
    if (!client_waits_for(client, WAIT_MEMORY))
        return;
    count_add(&client->front->counts.stalled, UINT64_MAX);
    feed_stall(client, false);
}
