#include "front/cluster/carry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/client/charge.h"
#include "front/route/request.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/route/fair_share.h"
#include "front/client/session.h"
#include "front/route/target.h"
#include "front/client/timing.h"
#include "front/route/places.h"
#include "front/session/wait_coverage.h"
#include "resp/emit.h"
#include "upstream/node/not_run.h"

#define TRY_FIRST_NS (1 * NS_PER_MS)
#define TRY_MOST_NS (50 * NS_PER_MS)
#define REDIRECT_NS (2 * NS_PER_MS)
#define AWAY_FIRST_NS (10 * NS_PER_MS)
#define AWAY_MOST_NS (100 * NS_PER_MS)
/* most bytes of a kept error reply that the client may receive; redirects are not kept (chosen) */
#define REFUSAL_MAX 512
/*
 * Limit for refusals of commands that may block (chosen: several round trips). A command refused
 * within this time was sent to the wrong node, and has not blocked in Redis.
 */
#define AT_ONCE_NS (10 * NS_PER_MS)

/* age from which an ASK is not followed: the slot may have moved on (chosen) */
#define ASK_GOOD_NS (50 * NS_PER_MS)

#define MOVED_AWAY SLICE("-UPSTREAM moved\r\n")

static uint64_t carry_now_ns(const struct client *client)
{
    return client->front->loop->now_ns;
}

static struct upstream *carry_upstream_of(const struct client *client)
{
    return client->front->nodes.worker_lanes.upstream;
}

static struct alarms *carry_alarms_of(const struct client *client)
{
    return &client->front->timeouts.alarms;
}

static void carry_on_due(struct alarm *alarm)
{
    link_wake(&container_of(alarm, struct carry, alarm)->client->link);
}

struct carry *carry_need(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->carry != NULL)
        return extra != NULL ? extra->carry : NULL;
    extra->carry =
        alarms_reserve(carry_alarms_of(client), 1) ? calloc(1, sizeof *extra->carry) : NULL;
    if (extra->carry == NULL) {
        client_close_starved(client);
        return NULL;
    }
    extra->carry->client = client;
    extra->carry->alarm.on_due = carry_on_due;
    queue_begin(&extra->carry->queue);
    return extra->carry;
}

static void end_of_probe(struct client *client);

/* Ends the call. The next request is then taken. */
static void carry_end(struct client *client)
{
    struct carry *carry = carry_of(client);
    alarm_stop(carry_alarms_of(client), &carry->alarm);
    if (carry->is_exec)
        carry->ops->end(client);
    if (carry->is_probe)
        end_of_probe(client);
    carry_set_step(carry, CARRY_NONE);
    carry->is_exec = carry->is_kept = carry->is_proving = carry->is_proven = false;
    carry->request.len = carry->held.len = 0;
    client_resume(client, WAIT_AGAIN);
}

void carry_stop(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL)
        return;
    carry_set_step(carry, CARRY_NONE);
    alarm_stop(carry_alarms_of(client), &carry->alarm);
    alarms_release(carry_alarms_of(client), 1);
}

void carry_free(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL)
        return;
    queue_drop(&carry->queue, &client->front->loop->pool);
    lease_drop(&carry->watching);
    bytes_fini(&carry->request);
    bytes_fini(&carry->held);
    bytes_fini(&carry->proof);
    bytes_fini(&carry->refusal);
    free(carry);
    client->extra->carry = NULL;
}

/* ---- keeping a request ---- */

bool carry_keep(struct client *client, const struct request *request)
{
    struct carry *carry = carry_need(client);
    if (carry == NULL)
        return false;
    carry->request.len = carry->held.len = carry->refusal.len = 0;
    carry->is_kept = !request->is_large;
    if (carry->is_kept && !bytes_add(&carry->request, request->bytes, SIZE_MAX)) {
        client_close_starved(client);
        return false;
    }
    carry->slot = target_slot(request);
    carry->tag = timing_tag(client, request->command, request->argc);
    carry->arrived_ns = client->lane_user.arrived_ns;
    carry->waited_us = client->lane_user.waited_us;
    carry->may_forge = request->command->may_forge;
    carry->may_wait = request_may_block(request);
    carry->sent_ns = carry_now_ns(client);
    carry->since_ns = carry->look_ns = carry->pause_ns = 0;
    carry->n_redirects = 0;
    carry->why = CARRY_NOT_REFUSED;
    carry->there = NULL;
    carry->is_muted = carry->in_reply = false;
    carry->is_proving = carry->is_proven = false;
    carry->is_probed = carry->owner_asks = false;
    carry->owner = NULL;
    return true;
}

bool carry_note_sent(struct client *client, const struct request *request)
{
    struct lane *lane = client->lane_user.lane;
    if (request->command->flow != FLOW_ONE || client->lane_user.in_flight == 0)
        return true;
    if (!carry_keep(client, request))
        return false;
    struct carry *carry = carry_of(client);
    struct call *call = calls_at(&lane->calls, client->lane_user.last_call);
    carry->flags = call->flags & (uint8_t) ~(CALL_MUTE | CALL_ENDS_RUN);
    carry->effect = call->effect;
    carry->argument = call->argument;
    /* weir must receive a redirect even if the client receives no replies */
    if ((call->flags & CALL_MUTE) == CALL_MUTE) {
        carry->is_muted = true;
        call->flags &= (uint8_t)~CALL_MUTE;
    }
    carry_set_step(carry, CARRY_SENT);
    if (!request->is_large)
        client_wait_for_replies(client);
    return true;
}

/* ---- requests that are too large to be kept ---- */

static bool is_on_its_way(const struct client *client, uint16_t slot)
{
    const struct slot_map *map = client->front->nodes.topology->slots;
    return map->states[slot] != SLOT_STABLE ||
           upstream_redirected_lately(carry_upstream_of(client), slot, carry_now_ns(client));
}

/* Appends an EXISTS request for one key. False if out of memory. */
static bool add_exists(struct bytes *out, struct slice key)
{
    char header[EMIT_HEADER_MAX];
    size_t n = emit_header(header, '$', (int64_t)key.len);
    return bytes_add(out, SLICE("*2\r\n$6\r\nEXISTS\r\n"), SIZE_MAX) &&
           bytes_add(out, slice_of(header, n), SIZE_MAX) && bytes_add(out, key, SIZE_MAX) &&
           bytes_add(out, SLICE("\r\n"), SIZE_MAX);
}

/* Keeps an EXISTS request for one key. False if out of memory; the client is then closed. */
static bool keep_probe(struct client *client, struct slice key)
{
    struct carry *carry = carry_of(client);
    carry->request.len = carry->held.len = carry->refusal.len = 0;
    if (add_exists(&carry->request, key))
        return true;
    client_close_starved(client);
    return false;
}

enum route carry_probe(struct client *client, const struct request *request)
{
    struct slice key;
    int32_t slot = target_slot(request);
    struct carry *carry = carry_of(client);
    if (slot < 0 || (carry != NULL && carry->is_probed) || !is_on_its_way(client, (uint16_t)slot) ||
        !keys_first(request->command, request->bytes, request->argc, &key))
        return ROUTE_GOES_ON;
    if (client->lane_user.in_flight > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    carry = carry_need(client);
    if (carry == NULL || !keep_probe(client, key))
        return ROUTE_STOP;
    carry->slot = slot;
    carry->tag = 0;
    carry->arrived_ns = client->lane_user.arrived_ns;
    carry->flags = carry->effect = 0;
    carry->sent_ns = carry->since_ns = carry_now_ns(client);
    carry->look_ns = carry->pause_ns = 0;
    carry->over_ns = carry->since_ns + carry_upstream_of(client)->redirect_timeout_ns;
    carry->n_redirects = 0;
    carry->why = CARRY_NOT_REFUSED;
    carry->there = carry->owner = NULL;
    carry->is_kept = carry->is_muted = carry->is_probe = true;
    carry->may_forge = carry->may_wait = carry->in_reply = false;
    carry_set_step(carry, CARRY_WAITS);
    client_wait(client, WAIT_AGAIN);
    carry_go_on(client);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_WAIT;
}

static void end_of_probe(struct client *client)
{
    struct carry *carry = carry_of(client);
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    carry->owner = has_lane ? nodes_row_of(client->lane_user.lane) : NULL;
    carry->owner_asks = carry->why == CARRY_ASK;
    carry->is_probe = false;
    carry->is_probed = true;
}

bool carry_end_probe(struct client *client, struct lane *lane)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL || !carry->is_probed)
        return true;
    bool asks = carry->owner_asks && nodes_row_of(lane) == carry->owner;
    carry->is_probed = carry->owner_asks = false;
    carry->owner = NULL;
    return !asks || carry_ask(client, lane);
}

/* ---- refusals ---- */

static enum carry_why carry_why_of(struct slice reply)
{
    static const struct {
        struct slice words;
        enum carry_why why;
    } rows[] = {
        {{"-TRYAGAIN ", 10}, CARRY_TRYAGAIN}, {{"-CLUSTERDOWN ", 13}, CARRY_AWAY},
        {{"-LOADING ", 9}, CARRY_AWAY},       {{"-READONLY ", 10}, CARRY_AWAY},
        {{"-MASTERDOWN ", 12}, CARRY_AWAY},   {{"-UNBLOCKED force unblock ", 25}, CARRY_UNBLOCKED},
    };
    if (redirect_is(reply))
        return reply.at[1] == 'M' ? CARRY_MOVED : CARRY_ASK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (reply.len > rows[i].words.len &&
            memcmp(reply.at, rows[i].words.at, rows[i].words.len) == 0)
            return rows[i].why;
    return CARRY_NOT_REFUSED;
}

/* True if no script can have forged the reply: Redis itself replies to EXISTS. */
static bool is_trusted(const struct carry *carry)
{
    return !carry->may_forge || carry->is_proving;
}

/*
 * True if a reply of this kind may lead to another sending. For a command that runs scripts, only a
 * redirect may lead to another sending.
 */
static bool is_refusal(const struct carry *carry, enum carry_why why)
{
    if (why == CARRY_NOT_REFUSED || (why == CARRY_UNBLOCKED && !carry->may_wait))
        return false;
    return is_trusted(carry) || why == CARRY_MOVED || why == CARRY_ASK;
}

static void count_refusal(const struct carry *carry, enum carry_why why, struct slice reply)
{
    struct lane_counts *counts = &carry->from->lanes.base.counts;
    if (why == CARRY_MOVED || why == CARRY_ASK)
        count_add(&counts->redirects[why == CARRY_ASK ? REDIRECT_ASK : REDIRECT_MOVED], 1);
    else if (why == CARRY_TRYAGAIN)
        count_add(&counts->redirects[REDIRECT_TRYAGAIN], 1);
    else if (reply.at[1] == 'C')
        count_add(&counts->redirects[REDIRECT_CLUSTERDOWN], 1);
}

/* Records where a redirect leads. False if the redirect must not be followed. */
static bool carry_follow(struct client *client, struct slice reply)
{
    struct carry *carry = carry_of(client);
    const struct nodes *nodes = &client->front->nodes;
    struct redirect redirect;
    int32_t slot = carry->is_exec || carry->slot == KEYS_NO_SLOT ? carry->queue.slot : carry->slot;
    bool is_whole = redirect_parse(reply, &redirect);
    if (!is_whole && is_trusted(carry))
        node_note_bad_redirect(lanes_node(&carry->from->lanes));
    if (!is_whole || redirect.slot != slot)
        return false;
    upstream_note_redirected(carry_upstream_of(client), redirect.slot, carry_now_ns(client));
    struct nodes_row *row = nodes_row_named(nodes, &redirect, lanes_node(&carry->from->lanes));
    upstream_ask_topology(carry_upstream_of(client));
    /* weir ignores the named node, because EXISTS finds the node that serves the slot */
    if (!is_trusted(carry))
        return ++carry->n_redirects <= CARRY_REDIRECTS;
    if (redirect.is_ask) {
        carry->there = row;
        carry->asked_ns = carry_now_ns(client);
    }
    for (size_t i = 0; !redirect.is_ask && i < nodes->n; i++)
        if (nodes->rows[i] == row)
            slot_map_set(nodes->topology->slots, redirect.slot, (uint16_t)i);
    /* the topology is outdated; weir waits as long as for a master that is away */
    if (row == NULL) {
        carry->look_ns = carry_now_ns(client) + AWAY_FIRST_NS;
        carry->over_ns = carry->since_ns + client->front->rules->failover_wait_ns;
        return true;
    }
    /* Two nodes may name each other for a moment. The waits are 0, 2, 6, 18 and 54 ms. */
    uint64_t pause_ns = 0;
    for (uint8_t i = 1; i <= carry->n_redirects; i++)
        pause_ns = pause_ns == 0 ? REDIRECT_NS : 3 * pause_ns;
    if (pause_ns > 0 && carry->look_ns < carry_now_ns(client) + pause_ns)
        carry->look_ns = carry_now_ns(client) + pause_ns;
    return ++carry->n_redirects <= CARRY_REDIRECTS;
}

/*
 * True if sending again could lose entries: an XREAD with `$` that has blocked would miss the
 * entries that arrive before the second sending.
 */
static bool may_miss(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (!carry->may_wait || !carry->is_kept || carry_now_ns(client) - carry->sent_ns < AT_ONCE_NS)
        return false;
    struct request_scan scan = {0};
    size_t used;
    struct slice bytes = bytes_slice(&carry->request);
    struct request request = {0};
    if (request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used) != SCAN_FRAME)
        return true;
    describe_request(&request, client->front, &scan, bytes);
    return block_time_is_from_now(request.command, bytes, request.argc);
}

bool carry_is_refusal(const struct client *client, struct slice reply)
{
    return is_refusal(carry_of(client), carry_why_of(reply));
}

bool carry_read_refusal(struct client *client, struct slice reply)
{
    struct carry *carry = carry_of(client);
    enum carry_why why = carry_why_of(reply);
    if (!is_refusal(carry, why))
        return false;
    carry->refusal.len = 0;
    /* the client never receives a redirect */
    bool is_redirect = why == CARRY_MOVED || why == CARRY_ASK;
    if (!is_redirect && !bytes_add(&carry->refusal, reply, REFUSAL_MAX)) {
        client_close_starved(client);
        return false;
    }
    bool is_away = why == CARRY_AWAY || why == CARRY_UNBLOCKED;
    bool was_away = carry->why == CARRY_AWAY || carry->why == CARRY_UNBLOCKED;
    /* redirect-timeout does not include the wait for a master */
    if (carry->since_ns == 0 || (was_away && !is_away))
        carry->since_ns = carry_now_ns(client);
    carry->is_proven = false;
    /* while the importing node lacks a key, each attempt starts with another ASK to that node */
    if (why == CARRY_TRYAGAIN)
        carry->n_redirects = 0;
    carry->why = (uint8_t)why;
    carry->there = NULL;
    carry->from = nodes_row_of(client->lane_user.lane);
    uint64_t most_ns = is_away ? client->front->rules->failover_wait_ns
                               : carry_upstream_of(client)->redirect_timeout_ns;
    carry->over_ns = carry->since_ns + most_ns;
    if (is_away)
        upstream_ask_topology(carry_upstream_of(client));
    count_refusal(carry, why, reply);
    if (is_redirect && !carry_follow(client, reply))
        carry->over_ns = 0;
    if (may_miss(client))
        carry->over_ns = 0;
    if (why == CARRY_TRYAGAIN || is_away)
        carry_pause(client);
    return true;
}

void carry_pause(struct client *client)
{
    struct carry *carry = carry_of(client);
    bool is_try = carry->why == CARRY_TRYAGAIN;
    uint64_t most_ns = is_try ? TRY_MOST_NS : AWAY_MOST_NS;
    uint64_t next_ns =
        carry->pause_ns == 0 ? (is_try ? TRY_FIRST_NS : AWAY_FIRST_NS) : carry->pause_ns * 2;
    carry->pause_ns = next_ns < most_ns ? next_ns : most_ns;
    carry->look_ns = carry_now_ns(client) + carry->pause_ns;
}

/* Counts a call that is given up after redirects. `from` may have left the topology. */
static void carry_count_given_up(const struct client *client)
{
    const struct nodes *nodes = &client->front->nodes;
    struct nodes_row *row = nodes_default_row(nodes);
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->rows[i] == carry_of(client)->from)
            row = nodes->rows[i];
    count_add(&row->lanes.base.counts.redirects[REDIRECT_GIVEN_UP], 1);
}

/* Returns the reply to the client for a call that is given up. */
static struct slice carry_give_up(const struct client *client)
{
    const struct carry *carry = carry_of(client);
    bool is_redirect = carry->why == CARRY_MOVED || carry->why == CARRY_ASK;
    if (is_redirect)
        carry_count_given_up(client);
    if (is_redirect && carry->may_wait)
        return SLICE("-UNBLOCKED the slot has moved while the command was blocked\r\n");
    return is_redirect || carry->refusal.len == 0 ? MOVED_AWAY : bytes_slice(&carry->refusal);
}

/* ---- replies ---- */

typedef void (*pass_fn)(struct lane_user *lane_user, const char *data, size_t n);

/* Takes a whole error reply to the call in flight. */
static void carry_take_error(struct client *client, struct slice reply, pass_fn pass)
{
    struct carry *carry = carry_of(client);
    if (carry->step == CARRY_NONE) { /* in MULTI */
        bool is_queued = carry->ops->take_refusal(client, reply);
        carry->is_void |= !is_queued;
        reply = is_queued ? SLICE("+QUEUED\r\n") : reply;
        pass(&client->lane_user, reply.at, reply.len);
        return;
    }
    if (carry->step == CARRY_REPLAYS || carry->step == CARRY_BEGINS) {
        (void)carry->ops->take_refusal(client, reply);
        return;
    }
    bool is_back = carry_read_refusal(client, reply);
    struct slice lost = is_back && carry->is_exec ? carry->ops->lost(client) : SLICE("");
    if (lost.len > 0) {
        reply = lost;
        is_back = false;
    } else if (!is_back && carry->is_proving) {
        carry->has_failed = true;
        return;
    } else if (is_back && !carry->is_kept) {
        reply = carry_give_up(client);
        is_back = false;
    }
    if (is_back && !client_is_closed(client)) {
        carry_set_step(carry, CARRY_WAITS);
        client_wait(client, WAIT_AGAIN);
    } else if (!carry->is_muted) {
        pass(&client->lane_user, reply.at, reply.len);
    }
}

/* True if the replies of this step are discarded, except for errors, which weir reads. */
static bool is_dropped(const struct carry *carry)
{
    bool is_unheard = carry->step == CARRY_SENT && (carry->is_muted || carry->is_proving);
    return carry->step == CARRY_BEGINS || carry->step == CARRY_REPLAYS || is_unheard;
}

/*
 * Takes bytes up to the end of a line; the line may be incomplete. Returns the number of bytes
 * taken.
 */
static size_t carry_take_line(struct client *client, const char *data, size_t n, pass_fn pass)
{
    struct carry *carry = carry_of(client);
    const char *end = memchr(data, '\n', n);
    size_t len = end != NULL ? (size_t)(end - data) + 1 : n;
    if (!bytes_add(&carry->held, slice_of(data, len), SIZE_MAX)) {
        client_close_starved(client);
        return n;
    }
    if (end == NULL)
        return n;
    struct bytes whole = carry->held;
    carry->held = (struct bytes){0};
    if (whole.at[0] == '-')
        carry_take_error(client, bytes_slice(&whole), pass);
    else if (!is_dropped(carry))
        pass(&client->lane_user, whole.at, whole.len);
    bytes_fini(&whole);
    return len;
}

bool carry_take_bytes(struct client *client, const char *data, size_t n, pass_fn pass)
{
    struct carry *carry = carry_of(client);
    const struct lane *lane = client->lane_user.lane;
    bool is_queueing = carry != NULL && carry->step == CARRY_NONE && carry->is_begun;
    if (carry == NULL || (carry->step == CARRY_NONE && !is_queueing) || lane == NULL ||
        lane->role != LANE_PRIVATE || lane->framing == FRAMING_UNSOLICITED)
        return false;
    bool are_lines = carry->step != CARRY_SENT; /* in MULTI every reply is a line */
    while (n > 0 && !client_is_closed(client)) {
        bool begins = carry->held.len == 0 && !carry->in_reply;
        bool is_line =
            carry->held.len > 0 || (begins && (*data == '-' || (are_lines && *data == '+')));
        if (!is_line) {
            carry->in_reply = lane_is_in_frame(lane);
            if (!is_dropped(carry))
                pass(&client->lane_user, data, n);
            break;
        }
        size_t used = carry_take_line(client, data, n, pass);
        data += used;
        n -= used;
    }
    return true;
}

bool carry_outlives_lane(const struct client *client)
{
    const struct carry *carry = carry_of(client);
    return carry != NULL && carry->step == CARRY_WAITS && client->lane_user.in_flight == 0;
}

/* ---- sending again ---- */

bool carry_asks(const struct carry *carry)
{
    const struct client *client = carry->client;
    const struct nodes *nodes = &client->front->nodes;
    if (carry->why != CARRY_ASK || carry_now_ns(client) - carry->asked_ns > ASK_GOOD_NS)
        return false;
    for (size_t i = 0; carry->there != NULL && i < nodes->n; i++)
        if (nodes->rows[i] == carry->there)
            return true;
    return false;
}

struct nodes_row *carry_row(const struct carry *carry)
{
    const struct nodes *nodes = &carry->client->front->nodes;
    int32_t slot = carry->is_exec ? carry->queue.slot : carry->slot;
    if (carry_asks(carry))
        return carry->there;
    return slot >= 0 ? nodes_slot_row(nodes, (uint16_t)slot) : nodes_default_row(nodes);
}

enum carry_found carry_find_lane(struct client *client, struct lane **lane)
{
    struct carry *carry = carry_of(client);
    struct request_scan scan = {0};
    struct request request = {.is_carried = true};
    size_t used;
    struct slice bytes = bytes_slice(&carry->request);
    enum scan_result scanned =
        request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used);
    assert(scanned == SCAN_FRAME);
    (void)scanned;
    describe_request(&request, client->front, &scan, bytes);
    for (;;) {
        if (!lane_choice_turn(client))
            return client_is_closed(client) ? CARRY_FOUND_GONE : CARRY_FOUND_WAITS;
        switch (login_renew(client, false)) {
        case LOGIN_WAITS:
            return CARRY_FOUND_WAITS;
        case LOGIN_PASSED:
            break;
        case LOGIN_GONE:
            return CARRY_FOUND_GONE;
        default:
            return CARRY_FOUND_NONE;
        }
        switch (lane_choice_find(client, &request, lane)) {
        case LANE_NOT_YET:
            return CARRY_FOUND_WAITS;
        case LANE_NONE:
            return client_is_closed(client) ? CARRY_FOUND_GONE : CARRY_FOUND_NONE;
        case LANE_FOUND:
            session_note_lane(client);
            return CARRY_FOUND;
        case LANE_UNPROVEN:
            break;
        }
    }
}

bool carry_ask(struct client *client, struct lane *lane)
{
    static const char request[] = "*1\r\n$6\r\nASKING\r\n";
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0);
    if (call == NULL) {
        client_close_starved(client);
        return false;
    }
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    lane_send(lane, &client->lane_user, request, sizeof request - 1);
    return true;
}

/*
 * Shortens the request's block time by the time already waited. False if out of memory; the client
 * is then closed.
 */
static bool carry_reduce(struct client *client)
{
    struct carry *carry = carry_of(client);
    struct bytes out = {0};
    struct request_scan scan = {0};
    struct request request = {0};
    size_t used;
    struct slice bytes = bytes_slice(&carry->request);
    if (!carry->may_wait ||
        request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used) != SCAN_FRAME)
        return true;
    describe_request(&request, client->front, &scan, bytes);
    uint64_t waited_ns = carry_now_ns(client) - carry->sent_ns;
    if (!block_time_reduce(request.command, bytes, request.argc, waited_ns, &out)) {
        bytes_fini(&out);
        client_close_starved(client);
        return false;
    }
    bytes_fini(&carry->request);
    carry->request = out;
    carry->sent_ns = carry_now_ns(client);
    return true;
}

/*
 * Sends EXISTS. Only Redis itself, and no script, answers or redirects EXISTS. The answering node
 * serves the slot.
 */
static void send_proof(struct client *client, struct lane *lane)
{
    struct carry *carry = carry_of(client);
    if (!lane_vouch(lane, &client->lane_user) || (carry_asks(carry) && !carry_ask(client, lane)))
        return;
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0);
    if (call == NULL) {
        client_close_starved(client);
        return;
    }
    call->arrived_ns = 0; /* not a request of the client */
    carry->in_reply = carry->has_failed = false;
    carry_set_step(carry, CARRY_SENT);
    lane_choice_note_sent(client);
    lane_send(lane, &client->lane_user, carry->proof.at, carry->proof.len);
    client->lane_user.wants_idle = true;
}

static void carry_send_again(struct client *client, struct lane *lane)
{
    struct carry *carry = carry_of(client);
    struct lane_user *lane_user = &client->lane_user;
    bool asks = carry_asks(carry);
    carry->asks_there = carry->effect == EFFECT_WATCH && asks;
    if (!carry_reduce(client) ||
        ((carry->flags & CALL_LOOK) != 0 && !lane_vouch(lane, lane_user)) ||
        (asks && !carry_ask(client, lane)))
        return;
    lane_user->arrived_ns = carry->arrived_ns;
    lane_user->waited_us = carry->waited_us;
    struct call *call =
        lane_call_flow(lane, lane_user, FLOW_ONE, 1, carry->tag | (uint64_t)WAIT_AGAIN << 32);
    if (call == NULL) {
        client_close_starved(client);
        return;
    }
    call->flags = carry->flags;
    call->effect = carry->effect;
    call->argument = carry->argument;
    if (carry->is_probe)
        call->arrived_ns = 0; /* not a request of the client */
    carry_set_step(carry, CARRY_SENT);
    carry->in_reply = false;
    front_count_fate(client->front, FATE_AGAIN);
    if (carry->may_forge)
        lane_distrust(lane);
    if (carry->may_wait)
        fair_share_note_blocking(client, timing_command(client->front, carry->tag),
                                 carry->request.len, timing_argc(carry->tag));
    else
        fair_share_note_call(client, timing_command(client->front, carry->tag), carry->request.len,
                             timing_argc(carry->tag));
    places_note_write(client, lane);
    lane_choice_note_sent(client);
    lane_send(lane, lane_user, carry->request.at, carry->request.len);
    client_resume_woken(client, WAIT_AGAIN);
    client_wait_for_replies(client);
}

void carry_answer(struct client *client, struct slice reply)
{
    struct carry *carry = carry_of(client);
    if (!carry->is_probe)
        timing_not_sent(client, carry->tag, carry->arrived_ns, carry->waited_us);
    if (!carry->is_muted) {
        charge_bytes_out(client, reply.len, 0);
        if (!client_is_closed(client))
            client_output(client, reply.at, reply.len);
    }
    if (!client_is_closed(client))
        carry_end(client);
}

/* Prepares for another attempt, because a lane may soon be available. */
static void carry_go_without(struct client *client)
{
    lane_choice_end_refused(client);
    client_forget_refusal(client);
    login_prove_again(client);
    lanes_hurry(&target_row(client)->lanes);
    carry_pause(client);
}

static void carry_wait_until(struct client *client, uint64_t due_ns)
{
    struct carry *carry = carry_of(client);
    alarm_stop(carry_alarms_of(client), &carry->alarm);
    alarm_set(carry_alarms_of(client), &carry->alarm,
              due_ns < carry->over_ns ? due_ns : carry->over_ns);
}

/*
 * Begins the check of a redirect that a script may have forged, by EXISTS of the first key. A
 * redirect of a request without keys is forged. False if the request is not sent: the request is
 * answered, or the client is closed.
 */
static bool carry_begin_proof(struct client *client)
{
    struct carry *carry = carry_of(client);
    bool is_redirect = carry->why == CARRY_MOVED || carry->why == CARRY_ASK;
    if (is_trusted(carry) || carry->is_proven || !is_redirect)
        return true;
    struct request_scan scan = {0};
    struct request request = {0};
    size_t used;
    struct slice key = slice_of("", 0);
    struct slice bytes = bytes_slice(&carry->request);
    enum scan_result scanned =
        request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used);
    if (scanned == SCAN_FRAME)
        describe_request(&request, client->front, &scan, bytes);
    bool has_key = scanned == SCAN_FRAME && keys_first(request.command, bytes, request.argc, &key);
    carry->proof.len = 0;
    if (!has_key) {
        carry_count_given_up(client);
        carry_answer(client, MOVED_AWAY);
        return false;
    }
    if (!add_exists(&carry->proof, key)) {
        client_close_starved(client);
        return false;
    }
    carry->redirected_by = carry->from;
    carry->is_proving = true;
    carry->why = CARRY_NOT_REFUSED;
    carry->n_redirects = 0;
    carry->there = NULL;
    return true;
}

/*
 * Called when EXISTS is answered. If the node that sent the redirect answers EXISTS, the redirect
 * was forged.
 */
static void end_proof(struct client *client)
{
    struct carry *carry = carry_of(client);
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    struct nodes_row *owner = has_lane ? nodes_row_of(client->lane_user.lane) : NULL;
    bool asks = carry->why == CARRY_ASK;
    carry->is_proving = false;
    if (carry->has_failed || owner == NULL || owner == carry->redirected_by) {
        carry_count_given_up(client);
        carry_answer(client, MOVED_AWAY);
        return;
    }
    carry->is_proven = true;
    carry->why = asks ? CARRY_ASK : CARRY_MOVED;
    carry->there = asks ? owner : NULL;
    carry->asked_ns = carry_now_ns(client);
    carry->look_ns = 0;
    carry_set_step(carry, CARRY_WAITS);
}

static void go_on(struct client *client)
{
    struct carry *carry = carry_of(client);
    struct lane *lane = NULL;
    if (!carry_begin_proof(client))
        return;
    struct nodes_row *row = carry_row(carry);
    if (row == NULL) {
        upstream_ask_topology(carry_upstream_of(client));
        carry_pause(client);
        return;
    }
    if (!target_set(client, row))
        return;
    /* the client gives up the lane that watches its keys */
    carry->is_lost |= pin_has(client, PIN_WATCH) && row != session_row(client);
    switch (carry_find_lane(client, &lane)) {
    case CARRY_FOUND:
        if (carry->is_proving)
            send_proof(client, lane);
        else
            carry_send_again(client, lane);
        break;
    case CARRY_FOUND_NONE:
        carry_go_without(client);
        break;
    case CARRY_FOUND_WAITS:
    case CARRY_FOUND_GONE:
        break;
    }
}

void carry_go_on(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (!carry_is_busy(client) || client->state >= CLIENT_CLOSING)
        return;
    if (client->lane_user.in_flight > 0) {
        client->lane_user.wants_idle = true;
        return;
    }
    if (carry->step == CARRY_SENT && carry->is_proving) {
        end_proof(client);
        if (client_is_closed(client) || carry->step != CARRY_WAITS)
            return;
    }
    if (carry->step == CARRY_SENT) {
        if (client_extra(client)->passage == NULL)
            carry_end(client);
        return;
    }
    if (client_waits_for(client, WAIT_LANE | WAIT_LOGIN) && carry_now_ns(client) < carry->over_ns) {
        carry_wait_until(client, carry->over_ns);
        return;
    }
    if (carry->step == CARRY_WAITS && carry->over_ns <= carry_now_ns(client)) {
        carry_answer(client, carry_give_up(client));
        return;
    }
    if (carry->step == CARRY_WAITS && carry_now_ns(client) < carry->look_ns) {
        carry_wait_until(client, carry->look_ns);
        return;
    }
    if (carry->is_exec)
        carry->ops->go_on(client);
    else
        go_on(client);
    if (!client_is_closed(client) && carry->step == CARRY_WAITS)
        carry_wait_until(client,
                         carry->look_ns > carry_now_ns(client) ? carry->look_ns : carry->over_ns);
}
