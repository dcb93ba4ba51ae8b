#include "front/session/tap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "front/client/charge.h"
#include "front/client/session.h"
#include "front/route/fair_share.h"
#include "front/route/place.h"
#include "upstream/lane/deliver.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/shared.h"
#include "upstream/lane/slow_reader.h"

static struct tap *tap_of(const struct lane_user *lane_user)
{
    return container_of((struct lane_user *)(uintptr_t)lane_user, struct tap, lane_user);
}

/* ---- callbacks of the lane ---- */

/*
 * Buffers a piece of a frame. False: out of memory, or the client has too much unread output; the
 * client is then closed.
 */
static bool keep_piece(struct tap *tap, struct slice piece)
{
    struct client *client = tap->client;
    client_limit_unread(client, tap->frame.len + piece.len);
    if (client_is_closed(client))
        return false;
    if (bytes_add(&tap->frame, piece, SIZE_MAX))
        return true;
    client_close_starved(client);
    return false;
}

static void tap_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct tap *tap = tap_of(lane_user);
    struct lane *lane = lane_user->lane;
    struct slice frame = slice_of(data, n);
    bool is_whole = !lane_is_in_frame(lane);
    if (client_is_closed(tap->client))
        return;
    if (!is_whole || tap->frame.len > 0) {
        if (!keep_piece(tap, frame) || !is_whole)
            return;
        frame = bytes_slice(&tap->frame);
    }
    bool is_apart = lane->framing == FRAMING_UNSOLICITED || calls_is_empty(&lane->calls);
    tap->ops->on_frame(tap, is_apart ? NULL : calls_oldest(&lane->calls), frame);
    bytes_fini(&tap->frame);
}

static void tap_on_answer(struct lane_user *lane_user, const struct call *call,
                          const struct glimpse *reply)
{
    struct tap *tap = tap_of(lane_user);
    tap->ops->on_answer(tap, call, reply);
}

static void tap_on_counted(struct lane_user *lane_user, uint8_t counted)
{
    charge_answered(tap_of(lane_user)->client, counted);
}

static void tap_on_timed(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    (void)lane_user;
    (void)call;
    (void)n;
}

static void tap_on_run_end(struct lane_user *lane_user)
{
    (void)lane_user;
}

/* A huge message is buffered like any other. */
static void tap_on_heavy(struct lane_user *lane_user)
{
    (void)lane_user;
}

static void tap_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    client_limit_unread(tap_of(lane_user)->client, bytes);
}

static void tap_on_refused(struct lane_user *lane_user, enum lane_end end, struct slice reply)
{
    struct tap *tap = tap_of(lane_user);
    if (end == END_LOGIN_REFUSED)
        reply = SLICE("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    else if (end == END_LATE)
        reply = err_text(ERR_UPSTREAM_TIMEOUT);
    else if (reply.len == 0)
        reply = err_text(ERR_UPSTREAM_UNAVAILABLE);
    free(tap->refusal);
    tap->refusal = memchr(reply.at, '\0', reply.len) == NULL ? strndup(reply.at, reply.len) : NULL;
}

/* Ends the count of calls that will not be answered. */
static void end_calls(struct tap *tap, const struct lane *lane)
{
    const struct calls *calls = &lane->calls;
    for (uint32_t at = calls->head; at != calls->tail; at++)
        if (calls_at(calls, at)->counted != 0)
            charge_answered(tap->client, calls_at(calls, at)->counted);
}

/* Closes the client, because its subscriptions in Redis are lost with the lane. */
static void tap_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct tap *tap = tap_of(lane_user);
    struct client *client = tap->client;
    end_calls(tap, lane);
    if (lane_user->in_flight > 0)
        front_count_fate(client->front, FATE_LOST);
    lane_user->lane = NULL;
    lane_user->in_flight = 0;
    list_take(&lane_user->waiting);
    fair_share_stop(client);
    client_cut_for(client, CLOSED_UPSTREAM);
}

static void tap_on_resume(struct lane_user *lane_user, enum lane_user_wait what)
{
    client_resume(tap_of(lane_user)->client,
                  what == LANE_USER_HAS_REPLIES ? WAIT_REPLIES : WAIT_LANE);
}

static struct room_share tap_share(const struct lane_user *lane_user)
{
    return session_lane_share(&tap_of(lane_user)->client->lane_user);
}

static void tap_audit(const struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane_user;
    assert(lane->role == LANE_PRIVATE && lane->owner == lane_user);
    (void)lane;
}

static struct link *tap_link_of(struct lane_user *lane_user)
{
    return &tap_of(lane_user)->client->link;
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = tap_on_bytes,
    .on_run_end = tap_on_run_end,
    .on_answer = tap_on_answer,
    .on_counted = tap_on_counted,
    .on_timed = tap_on_timed,
    .on_refused = tap_on_refused,
    .on_heavy = tap_on_heavy,
    .on_unread = tap_on_unread,
    .on_lost = tap_on_lost,
    .on_resume = tap_on_resume,
    .share = tap_share,
    .audit = tap_audit,
    .link = tap_link_of,
};

/* ---- to the client ---- */

/* True if a part of a reply on this lane user's lane was sent to the client. */
static bool tap_is_within(const struct client *client, const struct lane_user *lane_user)
{
    return (lane_user == &client->lane_user
                ? client_has_own_lane(client) || lane_user->in_flight > 0
                : lane_user->in_flight > 0) &&
           lane_user->lane != NULL && client->extra->gather == NULL &&
           deliver_is_in_frame_of(lane_user->lane, lane_user);
}

/*
 * Called while replies.h is idle. Makes a half-sent reply a run of replies.h, so that the frame
 * follows that reply. False: out of memory.
 */
static bool let_end(struct client *client)
{
    struct extra *extra = client->extra;
    struct spread *spread = client_extra(client)->spread;
    if (tap_is_within(client, &client->lane_user))
        return !lane_end_run(&client->lane_user) ||
               replies_begin(&extra->replies, &extra->own, true);
    if (spread != NULL && spread_is_in_frame(spread))
        return spread_end_run(spread, &extra->replies);
    return true;
}

/*
 * Stops the tap's lane if the client is slow. Exception: the lane is not stopped while weir reads
 * no requests of the client (is_slow in connection.c).
 */
static void tap_stop_if_slow(struct tap *tap)
{
    const struct client *client = tap->client;
    bool is_slow = client->link.is_congested &&
                   (!client->link.is_paused || client_waits_for(client, WAIT_MEMORY));
    if (is_slow && tap->lane_user.lane != NULL && !lane_is_closed(tap->lane_user.lane))
        slow_reader_begin(tap->lane_user.lane);
}

static void tap_put(struct tap *tap, struct slice frame)
{
    struct client *client = tap->client;
    struct replies *replies = &client->extra->replies;
    if (replies_are_idle(replies) && !let_end(client)) {
        client_close_starved(client);
        return;
    }
    if (replies_are_idle(replies)) {
        client_output(client, frame.at, frame.len);
        return;
    }
    client_output_from(client, &tap->source, frame.at, frame.len, true);
}

void tap_pass(struct tap *tap, struct slice frame)
{
    struct client *client = tap->client;
    if (client_is_closed(client) || (client_is_leaving(client) && !client_is_owed(client)))
        return;
    if (pin_has(client, PIN_PASSTHROUGH)) {
        session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                           "weir cannot place a message among uncounted replies");
        client_leave(client);
        return;
    }
    charge_bytes_out(client, frame.len, 0);
    if (client_is_closed(client))
        return;
    client_note_active(client);
    tap_put(tap, frame);
    if (!client_is_closed(client))
        tap_stop_if_slow(tap);
}

void tap_catch_up(struct tap *tap)
{
    lane_catch_up(&tap->lane_user);
}

/* ---- the lane ---- */

struct tap *tap_new(struct client *client, const struct tap_ops *ops, bool is_shard)
{
    struct tap *tap = calloc(1, sizeof *tap);
    if (tap == NULL) {
        client_close_starved(client);
        return NULL;
    }
    tap->lane_user.ops = &lane_user_ops;
    list_init(&tap->lane_user.waiting);
    list_init(&tap->in_taps);
    tap->client = client;
    tap->ops = ops;
    tap->is_shard = is_shard;
    return tap;
}

struct nodes_row *tap_row(const struct tap *tap)
{
    const struct lane *lane = tap->lane_user.lane;
    return lane != NULL && !lane_is_closed(lane) ? nodes_row_of(lane) : NULL;
}

/*
 * Borrows a lane. A tap that had a lane before borrows a new one, because the kept lane was not
 * clean.
 */
static bool tap_borrow(struct tap *tap, struct nodes_row *row)
{
    const struct lane_key key = session_key(tap->client, lanes_node(&row->lanes));
    tap->is_name_set = false;
    if (lend_private(&row->lanes, &key, &tap->lane_user, NULL, tap->wants_new) == NULL)
        return false;
    tap->wants_new = true;
    return true;
}

/* Retries, 20 ms apart. A worker gives back idle kept lanes within one iteration. */
#define RETRIES_MAX 5

/* No lane is available now: waits for one, or gives up. */
static enum finding tap_find_none(struct client *client, struct nodes_row *row)
{
    struct extra *extra = client->extra;
    bool waits = lanes_wait_to_dial(&row->lanes, &client->lane_user);
    if (!waits && extra->retries < RETRIES_MAX &&
        lanes_may_retry(&row->lanes, &client->lane_user)) {
        extra->retries++;
        waits = true;
    }
    if (!waits)
        extra->retries = 0;
    else
        client_wait(client, WAIT_LANE);
    return waits ? LANE_NOT_YET : LANE_NONE;
}

/*
 * Returns the place where the client proves its user at this node. NULL: the client has no login;
 * or out of memory, and the client is closed.
 */
static struct place *tap_place_of(const struct tap *tap, struct nodes_row *row)
{
    return session_login(tap->client) != NULL ? place_get(tap->client, row) : NULL;
}

/*
 * Sets the client's name, before the first subscription on the lane. A later change of the name is
 * not sent.
 */
static enum finding tap_set_name(struct tap *tap, struct lane *lane)
{
    if (!tap->is_name_set && !lane_choice_set_name(tap->client, &tap->lane_user, lane))
        return LANE_NONE;
    tap->is_name_set = true;
    return LANE_FOUND;
}

/* Returns LANE_UNPROVEN if the node must confirm the client's login again. */
static enum finding find_own(struct tap *tap, struct nodes_row *row, struct place *place)
{
    struct client *client = tap->client;
    struct login *login = session_login(client);
    if (tap->refusal != NULL)
        return LANE_NONE;
    if (tap->lane_user.lane == NULL && !tap_borrow(tap, row))
        return tap_find_none(client, row);
    client->extra->retries = 0;
    struct lane *lane = tap->lane_user.lane;
    bool is_up = lane_is_ready(lane) && !lane_is_congested(lane);
    if (is_up && (login == NULL || witness_suits(lane, &place->proof, login)))
        return tap_set_name(tap, lane);
    if (is_up && !witness_ask(lane, &place->proof, login)) {
        auth_proof_void(&place->proof);
        return LANE_UNPROVEN;
    }
    lane_wait(lane, &tap->lane_user);
    client_wait(client, WAIT_LANE);
    return LANE_NOT_YET;
}

enum finding tap_find_lane(struct tap *tap, struct nodes_row *row, const struct command *command)
{
    if (session_login(tap->client) == NULL)
        return find_own(tap, row, NULL); /* a client without a login has nothing to prove */
    struct place *place = place_get(tap->client, row);
    enum finding finding = LANE_UNPROVEN;
    while (place != NULL && finding == LANE_UNPROVEN) {
        struct lane *shared;
        finding = place_find_lane(place, command, &shared);
        if (finding == LANE_FOUND)
            finding = find_own(tap, row, place);
    }
    return place != NULL ? finding : LANE_NONE;
}

enum err tap_lack(const struct tap *tap, struct nodes_row *row)
{
    static const enum err weirs[] = {ERR_UPSTREAM_UNAVAILABLE, ERR_UPSTREAM_TIMEOUT};
    const struct place *place = tap_place_of(tap, row);
    if (tap->refusal == NULL && place != NULL)
        return place_lack(place);
    if (tap->refusal == NULL)
        return row->lanes.down != ERR_NONE ? row->lanes.down : ERR_UPSTREAM_BUSY;
    for (size_t i = 0; i < sizeof weirs / sizeof weirs[0]; i++)
        if (slice_eq(slice_str(tap->refusal), err_text(weirs[i])))
            return weirs[i];
    return ERR_NONE;
}

struct slice tap_why_none(struct tap *tap, struct nodes_row *row)
{
    const struct place *place = tap_place_of(tap, row);
    if (tap->refusal != NULL)
        return slice_str(tap->refusal);
    return place != NULL ? place_why_none(place) : err_text(lanes_why_none(&row->lanes));
}

void tap_forget_refusal(struct tap *tap, struct nodes_row *row)
{
    struct place *place = tap_place_of(tap, row);
    free(tap->refusal);
    tap->refusal = NULL;
    if (place != NULL)
        place_forget_refusal(place);
}

bool tap_send(struct tap *tap, const struct tap_request *request)
{
    struct lane *lane = tap->lane_user.lane;
    struct call *call =
        lane_call_flow(lane, &tap->lane_user, request->flow, request->frames, request->tag);
    if (call == NULL) {
        client_close_starved(tap->client);
        return false;
    }
    call->flags = CALL_LOOK;
    call->argument = request->argument;
    call->effect = request->effect;
    call->counted = request->counted;
    lane_send(lane, &tap->lane_user, request->bytes.at, request->bytes.len);
    return true;
}

/* ---- end ---- */

static bool is_clean(const struct tap *tap)
{
    const struct lane *lane = tap->lane_user.lane;
    return lane == NULL || lane_is_clean(lane);
}

bool tap_is_done(const struct tap *tap)
{
    return is_clean(tap) && tap->source.unsolicited.first == NULL;
}

void tap_leave(struct tap *tap)
{
    struct lane *lane = tap->lane_user.lane;
    list_take(&tap->lane_user.waiting);
    tap->wants_new = false;
    if (lane == NULL)
        return;
    bool is_done = is_clean(tap);
    lane_catch_up(&tap->lane_user);
    if (is_done) {
        tap->lane_user.lane = NULL;
        lend_take_back_as_is(lane);
        return;
    }
    if (!lane_is_closed(lane))
        end_calls(tap, lane);
    lane_forget(lane, &tap->lane_user);
    tap->lane_user.lane = NULL;
    tap->lane_user.in_flight = 0;
}

void tap_free(struct tap *tap)
{
    tap_leave(tap);
    list_take(&tap->in_taps);
    bytes_fini(&tap->frame);
    free(tap->refusal);
    free(tap);
}
