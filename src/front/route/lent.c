#include "front/route/lent.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "front/client/session.h"
#include "front/route/place.h"
#include "front/route/places.h"
#include "front/session/stateful.h"
#include "front/session/wait_coverage.h"
#include "limit/command/slot.h"
#include "resp/join.h"
#include "upstream/lane/lend.h"
#include "upstream/node/not_run.h"

#define MOVED SLICE("-UPSTREAM moved\r\n")
#define WRONGPASS SLICE("-WRONGPASS invalid username-password pair or user is disabled.\r\n")

static struct lent *lent_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct lent, lane_user);
}

/* ---- end ---- */

/* Frees everything but the reply, and marks the request as over. */
static void lent_end(struct lent *lent)
{
    prober_cancel(&lent->probe);
    list_take(&lent->lane_user.waiting);
    list_take(&lent->link.woken);
    bytes_fini(&lent->refusal);
    node_put(lent->node);
    lent->node = NULL;
}

static void lent_answer(struct lent *lent, struct slice reply)
{
    struct bytes kept = lent->reply;
    lent->reply = (struct bytes){0};
    lent_end(lent);
    lent->ops->on_reply(lent, reply);
    bytes_fini(&kept);
}

static void lent_lose(struct lent *lent)
{
    bytes_fini(&lent->reply);
    lent_end(lent);
    lent->ops->on_lost(lent);
}

void lent_leave(struct lent *lent)
{
    if (!lent_is_on(lent))
        return;
    if (lent->lane_user.lane != NULL)
        lane_forget(lent->lane_user.lane, &lent->lane_user);
    lent->lane_user.lane = NULL;
    bytes_fini(&lent->reply);
    lent_end(lent);
}

/* ---- callbacks of the lane ---- */

static void lent_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct lent *lent = lent_of(lane_user);
    if (bytes_add(&lent->reply, slice_of(data, n), SIZE_MAX))
        lent->ops->on_more(lent, n);
    else
        client_close_starved(lent->client);
}

static void lent_on_refused(struct lane_user *lane_user, enum lane_end end, struct slice reply)
{
    struct lent *lent = lent_of(lane_user);
    if (end == END_LOGIN_REFUSED)
        reply = WRONGPASS;
    lent->refusal.len = 0;
    if (!bytes_add(&lent->refusal, reply, GREETED_MAX))
        lent->refusal.len = 0;
    link_wake(&lent->link);
}

/* The lane is lost. A request that was sent may have run, so its client is closed. */
static void lent_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct lent *lent = lent_of(lane_user);
    (void)lane;
    lane_user->lane = NULL;
    lane_user->in_flight = 0;
    if (!lent->is_sent) {
        link_wake(&lent->link);
        return;
    }
    struct client *client = lent->client;
    lent_lose(lent);
    client_cut_for(client, CLOSED_UPSTREAM);
}

static void lent_ignore(struct lane_user *lane_user)
{
    (void)lane_user;
}

static void lent_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    (void)lane_user;
    (void)bytes;
}

static struct room_share lent_share(const struct lane_user *lane_user)
{
    const struct lent *lent =
        container_of((struct lane_user *)(uintptr_t)lane_user, struct lent, lane_user);
    return session_lane_share(&lent->client->lane_user);
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = lent_on_bytes,
    .on_refused = lent_on_refused,
    .on_heavy = lent_ignore,
    .on_blocking = lent_ignore,
    .on_unread = lent_on_unread,
    .on_lost = lent_on_lost,
    .share = lent_share,
    .to_link = (ptrdiff_t)offsetof(struct lent, link) - (ptrdiff_t)offsetof(struct lent, lane_user),
};

/* ---- from start to reply ---- */

/* True if the request's node is still in the topology. */
static bool lent_has_row(const struct lent *lent)
{
    const struct nodes *nodes = &lent->client->front->nodes;
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->rows[i] == lent->row)
            return lanes_node(&lent->row->lanes) == lent->node;
    return false;
}

/*
 * No lane was found: the search is repeated soon. When the time of the search is over, replies with
 * Redis' refusal or weir's error.
 */
static void look_again(struct lent *lent)
{
    struct lanes *lanes = &lent->row->lanes;
    if (lent->client->front->loop->now_ns < lent->over_ns) {
        if (lanes->down != ERR_NONE)
            lanes_hurry(lanes);
        lanes_wake_soon(lanes, &lent->lane_user);
        return;
    }
    if (lent->refusal.len > 0) {
        struct bytes refusal = lent->refusal;
        lent->refusal = (struct bytes){0};
        lent_answer(lent, bytes_slice(&refusal));
        bytes_fini(&refusal);
        return;
    }
    lent_answer(lent, err_text(lanes_why_none(lanes)));
}

/*
 * True if the node has accepted the client's login. False: the request is over, or a link will be
 * woken: the client's or the request's.
 */
static bool lent_is_let_in(struct lent *lent)
{
    struct place *place = place_get(lent->client, lent->row);
    struct lane *lane;
    if (place == NULL)
        return false;
    switch (place_find_lane(place, NULL, &lane)) {
    case LANE_FOUND:
        return true;
    case LANE_NOT_YET:
    case LANE_UNPROVEN:
        break;
    case LANE_NONE:
        if (client_is_closed(lent->client))
            break;
        if (lent->client->front->loop->now_ns >= lent->over_ns || place_lack(place) == ERR_NONE)
            lent_answer(lent, place_why_none(place));
        else
            look_again(lent);
        place_forget_refusal(place);
        break;
    }
    return false;
}

/* Most hash tags that find_cover tries. With N masters, one tag in N leads to a given master. */
#define TAGS_MAX 65536

/* Finds a key that weir may write, of a slot of this node. False: none found. */
static bool find_cover(const struct lent *lent, char *out, size_t room)
{
    char key[COVERAGE_KEY_ROOM];
    const struct nodes *nodes = &lent->client->front->nodes;
    struct slice prefix = coverage_key(lent->client, key);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        int n = snprintf(out, room, "%.*s{%u}", (int)prefix.len, prefix.at, i);
        if (nodes_slot_row(nodes, slot_of(slice_of(out, (size_t)n))) == lent->row)
            return true;
    }
    return false;
}

static bool lent_borrow(struct lent *lent)
{
    struct lanes *lanes = &lent->row->lanes;
    const struct lane_key key = session_key(lent->client, lent->node);
    char cover[COVERAGE_KEY_ROOM + 16];
    if (lent->must_cover && find_cover(lent, cover, sizeof cover))
        return lend_covering(lanes, &key, &lent->lane_user, slice_str(cover), false) != NULL;
    return lend_private(lanes, &key, &lent->lane_user, NULL, false) != NULL;
}

/* Redis has answered the probe but not the request: the request blocks. */
static void lent_on_probe_over(struct probe *probe)
{
    struct lent *lent = container_of(probe, struct lent, probe);
    struct client *client = lent->client;
    if (lent->lane_user.lane == NULL || lent->lane_user.in_flight == 0)
        return;
    lane_forget(lent->lane_user.lane, &lent->lane_user);
    lent->lane_user.lane = NULL;
    lent_lose(lent);
    client_cut_for(client, CLOSED_BY_CLIENT);
}

static void ask_whether_it_blocks(struct lent *lent)
{
    if (!lent->is_in_vain || !list_is_empty(&lent->probe.in_prober))
        return;
    struct lane *lane = prober_start(&nodes_row_of(lent->lane_user.lane)->prober, &lent->probe);
    if (lane != NULL)
        lane_wait(lane, &lent->lane_user);
}

static void lent_send_request(struct lent *lent)
{
    struct lane *lane = lent->lane_user.lane;
    struct call *call = lane_call_flow(lane, &lent->lane_user, FLOW_ONE, 1, lent->tag);
    if (call == NULL) {
        client_close_starved(lent->client);
        return;
    }
    if (lent->writes)
        places_note_write(lent->client, lane);
    if (lent->admits)
        call->flags |= CALL_ADMITS;
    if (lent->may_forge)
        lane_distrust(lane);
    if (lent->blocks)
        call->flags |= CALL_MAY_WAIT;
    lent->is_covered = lent->must_cover && lane_take_cover(lane) && !lent->is_lost;
    lent->is_sent = true;
    lent->lane_user.wants_idle = true;
    lane_send(lane, &lent->lane_user, lent->request.at, lent->request.len);
    ask_whether_it_blocks(lent);
}

static bool lent_starts(struct slice text, struct slice with)
{
    return text.len >= with.len && memcmp(text.at, with.at, with.len) == 0;
}

/*
 * Returns WAIT's reply. Where WAIT cannot cover the client's writes, the reply says that no replica
 * has them. This reply also replaces the error of a node that has become a replica. Other errors
 * stay.
 */
static struct slice uncovered(const struct lent *lent)
{
    struct slice reply = bytes_slice(&lent->reply);
    bool is_demoted = lent_starts(reply, SLICE("-ERR WAIT cannot be used with replica"));
    bool is_aof_demoted = lent_starts(reply, SLICE("-ERR WAITAOF cannot be used with replica"));
    bool is_list = is_aof_demoted || lent_starts(reply, SLICE("*"));
    if (!lent->must_cover)
        return reply;
    if (is_demoted || is_aof_demoted)
        upstream_ask_topology(lent->client->front->nodes.worker_lanes.upstream);
    else if (lent->is_covered || join_is_error(reply))
        return reply;
    return is_list ? SLICE("*2\r\n:0\r\n:0\r\n") : SLICE(":0\r\n");
}

/* The reply is whole: the lane is reset and kept for another owner. */
static void lent_give_back(struct lent *lent)
{
    struct lane *lane = lent->lane_user.lane;
    /* the request has no slot, so a redirect is not followed */
    bool is_redirect = redirect_is(bytes_slice(&lent->reply));
    if (is_redirect)
        count_add(&lane->base->counts.redirects[REDIRECT_GIVEN_UP], 1);
    lent->lane_user.lane = NULL;
    lend_take_back_as_is(lane);
    lent_answer(lent, is_redirect ? MOVED : uncovered(lent));
}

void lent_cover(struct lent *lent, bool has_writes)
{
    lent->must_cover = true;
    lent->is_lost = !has_writes;
}

void lent_hurry(struct lent *lent)
{
    if (!lent_is_on(lent) || !lent->blocks || lent->is_in_vain)
        return;
    lent->is_in_vain = true;
    if (lent->is_sent && lent->lane_user.lane != NULL && lent->lane_user.in_flight > 0)
        ask_whether_it_blocks(lent);
}

void lent_go_on(struct lent *lent)
{
    if (!lent_is_on(lent) || client_is_closed(lent->client))
        return;
    if (lent->is_sent) {
        if (lent->lane_user.lane != NULL && lent->lane_user.in_flight == 0)
            lent_give_back(lent);
        else if (lent->lane_user.lane != NULL)
            ask_whether_it_blocks(lent);
        return;
    }
    if (lent->lane_user.lane == NULL) {
        if (!lent_has_row(lent)) {
            lent_answer(lent, err_text(ERR_UPSTREAM_UNAVAILABLE));
            return;
        }
        if (!lent_is_let_in(lent))
            return;
        if (!lent_borrow(lent)) {
            look_again(lent);
            return;
        }
    }
    struct lane *lane = lent->lane_user.lane;
    if (!lane_is_ready(lane) || lane_is_congested(lane))
        lane_wait(lane, &lent->lane_user);
    else
        lent_send_request(lent);
}

static void lent_on_wake(struct link *link)
{
    lent_go_on(container_of(link, struct lent, link));
}

static const struct link_ops link_ops = {.on_wake = lent_on_wake};

void lent_start(struct lent *lent, const struct lent_ops *ops, struct client *client,
                const struct request *request, struct nodes_row *row, struct slice bytes)
{
    *lent = (struct lent){
        .lane_user = {.ops = &lane_user_ops},
        .ops = ops,
        .client = client,
        .row = row,
        .node = node_get(lanes_node(&row->lanes)),
        .request = bytes,
        .over_ns = client->front->loop->now_ns + client->front->rules->failover_wait_ns,
        .tag = 0,
        .may_forge = request->command->may_forge,
        .blocks = request->command->blocks,
        .writes = request->command->is_pausable,
        .admits = request_effect(request) == EFFECT_ADMIT && stateful_admits(request),
    };
    lent->probe.on_over = lent_on_probe_over;
    list_init(&lent->probe.in_prober);
    list_init(&lent->lane_user.waiting);
    link_init_hollow(&lent->link, client->front->loop, &link_ops);
}
