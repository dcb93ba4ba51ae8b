#include "front/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "front/place.h"
#include "front/route.h"
#include "front/session.h"
#include "front/special.h"

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

/* ---- replies, in the client's order ---- */

static void limit_unread(struct client *client, uint64_t more)
{
    uint64_t waiting = link_pending(&client->link) + client->locals.bytes + more;
    if (waiting > client->front->settings->output_limit_bytes && !client_is_closed(client)) {
        char name[SESSION_TEXT];
        session_print(client, name);
        log_warn("client %s is closed: %" PRIu64 " bytes of replies are unread, more than output-limit", name, waiting);
        client_close(client);
    }
}

void client_output(struct client *client, const char *data, size_t n)
{
    link_write(&client->link, data, n);
    limit_unread(client, 0);
}

void client_answer(struct client *client, struct slice reply)
{
    if (client->is_silent || client->skips_next)
        return;
    if (client->rider.in_flight == 0) {
        client_output(client, reply.at, reply.len);
        return;
    }
    if (!chain_append(&client->locals, &client->front->loop->pool, reply.at, reply.len)) {
        client_close(client);
        return;
    }
    lane_attach_local(&client->rider, (uint32_t)reply.len);
    client_output(client, NULL, 0);
}

static void on_local(struct rider *rider, uint32_t bytes)
{
    struct client *client = client_of_rider(rider);
    while (bytes > 0 && !client_is_closed(client)) {
        struct slice piece;
        if (chain_peek(&client->locals, &piece, 1) == 0)
            return;
        size_t part = piece.len < bytes ? piece.len : bytes;
        client_output(client, piece.at, part);
        chain_drop(&client->locals, &client->front->loop->pool, part);
        bytes -= (uint32_t)part;
    }
}

static void on_bytes(struct rider *rider, const char *data, size_t n)
{
    struct client *client = client_of_rider(rider);
    client_output(client, data, n);
    /* A slow reader stops its own lane, and Redis sees what it would see without weir. */
    if (client->has_own_lane && client->link.is_congested && rider->lane != NULL)
        lane_stall(rider->lane);
}

static void on_answer(struct rider *rider, const struct call *call, const struct glimpse *reply)
{
    special_answered(client_of_rider(rider), call, reply);
}

static void on_unread(struct rider *rider, uint64_t bytes)
{
    limit_unread(client_of_rider(rider), bytes);
}

static void on_refused(struct rider *rider, struct slice reply)
{
    struct client *client = client_of_rider(rider);
    client->was_refused = true;
    free(client->refusal);
    client->refusal = reply.len > 0 ? strndup(reply.at, reply.len) : NULL;
}

static void on_heavy(struct rider *rider)
{
    client_of_rider(rider)->heavy_until_ns = link_loop(rider->link)->now_ns + HEAVY_NS;
}

static void on_blocking(struct rider *rider)
{
    struct client *client = client_of_rider(rider);
    char name[SESSION_TEXT];
    session_print(client, name);
    log_warn("client %s is closed before output-limit: other clients wait behind a reply that it does not read", name);
    client_close(client);
}

static void on_lost(struct rider *rider)
{
    client_close(client_of_rider(rider));
}

static const struct rider_ops rider_ops = {
    .on_bytes = on_bytes,
    .on_local = on_local,
    .on_answer = on_answer,
    .on_refused = on_refused,
    .on_heavy = on_heavy,
    .on_unread = on_unread,
    .on_blocking = on_blocking,
    .on_lost = on_lost,
};

/* ---- leaving ---- */

static void free_intake(struct client *client)
{
    if (client->intake == NULL)
        return;
    client->front->loop->pool.given_back += intake_free(client->intake);
    client->intake = NULL;
}

static void finish_when_answered(struct client *client)
{
    if (client->rider.in_flight == 0)
        link_finish(&client->link);
    else
        client->rider.wants_idle = true;
}

void client_leave(struct client *client)
{
    if (client_is_closed(client))
        return;
    client->is_leaving = true;
    link_resume(&client->link); /* what it still sends is thrown away, but its end must be heard */
    finish_when_answered(client);
}

void client_close(struct client *client)
{
    if (client_is_closed(client))
        return;
    link_close(&client->link);
    struct lane *lane = client->rider.lane;
    if (lane != NULL && (client->has_own_lane || client->rider.in_flight > 0))
        lane_forget(lane, &client->rider);
    list_take(&client->rider.waiting);
    list_take(&client->in_front);
    if (client->rider.absorbed > 0)
        lanes_absorbed(&client->front->lanes, &client->rider);
    if (client->ending != NULL)
        prober_cancel(&client->ending->probe);
    if (client->subject != NULL)
        subject_put(client->front->settings->subjects, client->subject);
    client->subject = NULL;
    atomic_fetch_sub_explicit(&client->front->settings->clients, 1, memory_order_relaxed);
}

static void on_closed(struct link *link)
{
    struct client *client = client_of_link(link);
    chain_clear(&client->locals, &client->front->loop->pool);
    free_intake(client);
    free(client->passage);
    free(client->ending);
    free(client->refusal);
    session_free(client);
    free(client);
}

static void protocol_error(struct client *client, const struct request_scan *scan)
{
    char text[ERR_EXPECTED_DOLLAR_ROOM];
    struct slice reply = err_text(scan->error);
    if (scan->error == ERR_PROTO_EXPECTED_DOLLAR)
        reply = slice_of(text, err_expected_dollar(text, scan->got));
    client_answer(client, reply);
    client_leave(client);
}

/* ---- requests ---- */

static const struct request_limits *limits_of(const struct client *client)
{
    return session_is_anonymous(client) ? &request_limits_before_auth : &request_limits_normal;
}

static bool is_large(const struct request_scan *scan)
{
    return !scan->is_inline && scan->at + scan->bulk_left > LARGE_REQUEST;
}

static void take_frame(struct intake *in, enum route result)
{
    in->has_frame = result == ROUTE_WAIT;
    if (result != ROUTE_WAIT)
        in->taken = in->scanned;
}

/* Take requests for as long as they can go. */
static void take(struct client *client, struct intake *in)
{
    const struct request_limits *limits = limits_of(client);
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN && !client->is_held && !client->is_leaving && client->passage == NULL) {
        assert(in->taken <= in->scanned && in->scanned <= in->filled && in->filled <= in->capacity);
        enum scan_result scanned = SCAN_FRAME;
        if (!in->has_frame) {
            size_t used;
            scanned = request_scan(&in->scan, limits, in->data + in->scanned, in->filled - in->scanned, &used);
            in->scanned += (uint32_t)used;
        }
        struct slice bytes = slice_of(in->data + in->taken, in->scanned - in->taken);
        if (scanned == SCAN_BAD) {
            route_flush(client->front);
            protocol_error(client, &in->scan);
            return;
        }
        if (scanned == SCAN_MORE && (bytes.len == 0 || !is_large(&in->scan)))
            break;
        if (scanned == SCAN_MORE) {
            result = route_large(client, &in->scan, bytes);
            if (result == ROUTE_TAKEN)
                in->taken = in->scanned;
            continue;
        }
        result = route_request(client, &in->scan, bytes);
        take_frame(in, result);
        limits = limits_of(client);
    }
    route_flush(client->front);
}

/*
 * The protocol was broken in the middle of a large request. Half of it is in Redis, which will never answer: the lane
 * is given up, and earlier replies that are still on it with it.
 */
static void abandon_passage(struct client *client)
{
    if (!client->passage->is_refused) {
        place_abandon(client);
        chain_clear(&client->locals, &client->front->loop->pool);
    }
    protocol_error(client, &client->passage->scan);
}

/* Pass on a piece of a large request. Returns how much of it was used; less than n: the request has ended. */
static size_t pass(struct client *client, const char *data, size_t n)
{
    struct passage *passage = client->passage;
    size_t used;
    enum scan_result result = request_scan(&passage->scan, limits_of(client), data, n, &used);
    if (result == SCAN_BAD) {
        abandon_passage(client);
        return n;
    }
    if (!passage->is_refused && client->rider.lane != NULL)
        lane_send(client->rider.lane, data, used);
    if (result == SCAN_FRAME) {
        free(passage);
        client->passage = NULL;
    } else if (!passage->is_refused && lane_is_congested(client->rider.lane)) {
        lane_wait(client->rider.lane, &client->rider);
        link_pause(&client->link);
    }
    return used;
}

/* ---- what waits in memory ---- */

/* Keep what a local intake, which points into the loop's read buffer, has left. */
static void keep(struct client *client, const struct intake *local)
{
    if (intake_is_empty(local) || client->is_leaving || client_is_closed(client))
        return;
    client->intake = intake_keep(local);
    if (client->intake == NULL)
        client_close(client);
}

/* Move the rest of the client's own intake to the front, or give the memory back. */
static void compact(struct client *client)
{
    if (intake_is_empty(client->intake) || client->is_leaving)
        free_intake(client);
    else
        intake_compact(client->intake);
}

/* Whoever cannot go on reads no more than a fixed number of bytes; who can, reads. */
static void adjust_reading(struct client *client)
{
    if (client->is_leaving || client_is_closed(client))
        return;
    bool is_full = client->intake != NULL && client->intake->filled > INTAKE_MAX - INTAKE_MIN_READ;
    bool is_waiting = !list_is_empty(&client->rider.waiting) && client->passage != NULL;
    if (is_full || is_waiting)
        link_pause(&client->link);
    else
        link_resume(&client->link);
}

/* What Redis has not answered by now blocks; on a connection of its own the client would be gone. */
static void on_probe_over(struct probe *probe)
{
    struct client *client = container_of(probe, struct ending, probe)->client;
    place_abandon(client);
    link_finish(&client->link);
}

/* A command of a client that has gone must not wait in Redis: it could take an element for nobody. */
static void end_waiting(struct client *client)
{
    if (!client->has_own_lane || client->rider.lane == NULL || !lane_may_wait(client->rider.lane))
        return;
    if (client->ending == NULL) {
        client->ending = malloc(sizeof *client->ending);
        if (client->ending == NULL) {
            client_close(client);
            return;
        }
        client->ending->client = client;
        client->ending->probe.on_over = on_probe_over;
        list_init(&client->ending->probe.in_prober);
    }
    struct lane *lane = prober_start(&client->front->prober, &client->ending->probe);
    if (lane != NULL)
        lane_wait(lane, &client->rider);
}

/* All was taken and the peer sends no more. */
static void check_eof(struct client *client)
{
    if (!client->is_eof || client_is_closed(client))
        return;
    end_waiting(client);
    if (client->is_leaving || client_is_closed(client))
        return;
    const struct intake *in = client->intake;
    bool has_more = in != NULL && (in->has_frame || in->scanned < in->filled);
    if (!has_more && !client->is_held && !client->rider.wants_idle)
        client_leave(client);
}

static void on_data(struct link *link, const char *data, size_t n)
{
    struct client *client = client_of_link(link);
    if (client->is_leaving)
        return;
    while (n > 0 && client->passage != NULL && !client_is_closed(client)) {
        size_t used = pass(client, data, n);
        data += used;
        n -= used;
    }
    if (n == 0 || client_is_closed(client))
        return;
    if (client->intake != NULL) {
        client->intake->filled += (uint32_t)n;
        take(client, client->intake);
        if (!client_is_closed(client))
            compact(client);
    } else {
        struct intake local = {.data = (char *)(uintptr_t)data, .filled = (uint32_t)n, .capacity = (uint32_t)n};
        take(client, &local);
        keep(client, &local);
    }
    adjust_reading(client);
}

static char *on_room(struct link *link, size_t *room)
{
    struct intake *in = client_of_link(link)->intake;
    if (in == NULL)
        return NULL;
    *room = intake_make_room(in);
    return in->data + in->filled;
}

static void on_wake(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client_is_closed(client))
        return;
    if (client->is_leaving) {
        finish_when_answered(client);
        check_eof(client);
        return;
    }
    place_release(client);
    if (client->intake != NULL) {
        take(client, client->intake);
        if (client_is_closed(client))
            return;
        compact(client);
    }
    adjust_reading(client);
    check_eof(client);
}

/* ---- the connection ---- */

static void on_end(struct link *link, int status)
{
    struct client *client = client_of_link(link);
    if (status != UV_EOF || client->is_raw || client->passage != NULL) {
        client_close(client);
        return;
    }
    client->is_eof = true;
    check_eof(client);
}

static void on_drained(struct link *link)
{
    struct client *client = client_of_link(link);
    if (client->rider.absorbed > 0)
        lanes_absorbed(&client->front->lanes, &client->rider);
    if (client->has_own_lane || client->rider.in_flight > 0)
        lane_catch_up(&client->rider);
}

static const struct link_ops link_ops = {
    .on_room = on_room,
    .on_data = on_data,
    .on_end = on_end,
    .on_wake = on_wake,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

/* ---- the worker's clients ---- */

static bool is_full(struct front_settings *settings)
{
    unsigned before = atomic_fetch_add_explicit(&settings->clients, 1, memory_order_relaxed);
    if (before < settings->max_clients)
        return false;
    atomic_fetch_sub_explicit(&settings->clients, 1, memory_order_relaxed);
    return true;
}

static void turn_away(int fd, enum err reason)
{
    struct slice text = err_text(reason);
    (void)!send(fd, text.at, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

void front_accept(struct front *front, int fd, bool is_unix)
{
    if (is_full(front->settings)) {
        turn_away(fd, ERR_MAX_CLIENTS);
        return;
    }
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        atomic_fetch_sub_explicit(&front->settings->clients, 1, memory_order_relaxed);
        turn_away(fd, ERR_OUT_OF_MEMORY);
        return;
    }
    client->front = front;
    client->rider.ops = &rider_ops;
    client->rider.link = &client->link;
    list_init(&client->rider.waiting);
    list_init(&client->in_front);
    if (link_adopt(&client->link, front->loop, RANK_CLIENT, fd, is_unix, &link_ops) != 0) {
        atomic_fetch_sub_explicit(&front->settings->clients, 1, memory_order_relaxed);
        free(client);
        return;
    }
    list_push(&front->clients, &client->in_front);
    session_identify(client);
}

static void on_login_refused(void *arg, const struct login *login)
{
    struct front *front = arg;
    struct list *next;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        struct client *client = container_of(at, struct client, in_front);
        next = at->next;
        if (session_has_login(client, login))
            client_close(client);
    }
}

void front_init(struct front *front, struct loop *loop, struct front_settings *settings, struct command_table *commands,
                struct policies *policies)
{
    memset(front, 0, sizeof *front);
    front->loop = loop;
    front->settings = settings;
    front->commands = commands;
    front->policies = policies;
    list_init(&front->clients);
    prober_init(&front->prober, &front->lanes);
    lanes_init(&front->lanes, loop, settings->upstream, !settings->lanes_private, on_login_refused, front);
}

void front_adopt(struct front *front, struct command_table *commands, struct policies *policies)
{
    command_table_put(front->commands);
    policies_put(front->policies);
    front->commands = commands;
    front->policies = policies;
}

void front_close(struct front *front)
{
    while (!list_is_empty(&front->clients))
        client_close(container_of(front->clients.next, struct client, in_front));
    lanes_close(&front->lanes);
}

void front_fini(struct front *front)
{
    command_table_put(front->commands);
    policies_put(front->policies);
}
