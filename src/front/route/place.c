#include "front/route/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/client/charge.h"
#include "front/route/fair_share.h"
#include "front/route/overtaken.h"
#include "front/client/read_side.h"
#include "front/client/remains.h"
#include "front/client/session.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"
#include "upstream/lane/shared.h"
#include "upstream/lane/slow_reader.h"

/* most calls in flight of a client that pays for replies by size; as in lane_choice.c */
#define UNKNOWN_CALLS 64

static struct place *place_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct place, lane_user);
}

static struct pool *place_pool_of(const struct place *place)
{
    return &place->client->front->loop->pool;
}

static struct lanes *lanes_of_place(const struct place *place)
{
    return &place->row->lanes;
}

/* ---- callbacks of the lane ---- */

/* Charges n bytes of replies to the client. False: the client is not to get the bytes. */
static bool place_note_bytes(struct place *place, size_t n)
{
    struct client *client = place->client;
    if (client_is_leaving(client) && !client_is_owed(client))
        return false;
    charge_bytes_out(client, n, place->lane_user.counted);
    if (client_is_closed(client))
        return false;
    client_note_active(client);
    return true;
}

/*
 * Lets a shared lane stop reading for a client in debt by a limit on bytes. The lane stops only for
 * a large reply with no other client's call behind it.
 */
static void note_paying(struct place *place)
{
    struct client *client = place->client;
    place->lane_user.is_paying =
        !client->lane_user.is_gone && charge_is_in_debt(client, UNIT_BYTES_OUT);
}

static void place_put_in_order(struct place *place, struct slice bytes, bool is_whole)
{
    struct client *client = place->client;
    struct extra *extra = client->extra;
    const struct spread_outlet outlet = {client_put_out, client};
    if (!spread_take(extra->spread, &extra->replies, place, bytes, is_whole, &outlet))
        client_close_starved(client);
    else if (!client_is_closed(client) && replies_bytes(&extra->replies) > 0)
        client_limit_unread(client, 0);
}

static void place_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct place *place = place_of(lane_user);
    struct client *client = place->client;
    if (!place_note_bytes(place, n))
        return;
    fair_share_note_bytes(client, n);
    const struct extra *extra = client->extra;
    const bool is_whole = !lane_is_in_frame(lane_user->lane);
    if (is_whole && spread_take_only(extra->spread, &extra->replies, place))
        client_output(client, data, n);
    else
        place_put_in_order(place, slice_of(data, n), is_whole);
    note_paying(place);
}

static void place_on_unheard(struct lane_user *lane_user, size_t n)
{
    if (place_note_bytes(place_of(lane_user), n))
        note_paying(place_of(lane_user));
}

static struct link *place_on_passing(struct lane_user *lane_user)
{
    struct client *client = place_of(lane_user)->client;
    const struct extra *extra = client->extra;
    bool passes = !client_is_leaving(client) &&
                  spread_may_pass(extra->spread, &extra->replies, place_of(lane_user));
    return passes ? &client->link : NULL;
}

static void place_on_passed(struct lane_user *lane_user, size_t n)
{
    spread_passed(place_of(lane_user), n);
    if (!place_note_bytes(place_of(lane_user), n))
        return;
    client_limit_unread(place_of(lane_user)->client, 0);
    note_paying(place_of(lane_user));
}

static void place_on_counted(struct lane_user *lane_user, uint8_t counted)
{
    charge_answered(place_of(lane_user)->client, counted);
}

void place_keep_heard(const struct place *place)
{
    struct read_side *reading = read_side_of(place->client);
    if (reading != NULL && reading->seen_ns < place->heard_ns)
        reading->seen_ns = place->heard_ns;
}

/*
 * Records the time of the answer, for front/cluster/shard_reads.h. The time when the iteration
 * began would be too early. In this iteration the master may first have reported an offset and then
 * answered.
 */
static void note_heard(struct place *place)
{
    place->heard_ns = clock_ns();
    if (!list_is_empty(&place->in_retired))
        place_keep_heard(place);
    place->doubts = reach_doubts(&lanes_node(lanes_of_place(place))->reach);
}

static void drop_answered(struct place *place, uint32_t n)
{
    struct unanswered *unanswered = &place->unanswered;
    for (; n > 0 && !list_is_empty(&client_extra(place->client)->spread->refused); n--) {
        overtaken_note_run(place, unanswered_oldest(unanswered));
        unanswered_drop(unanswered, place_pool_of(place), 1);
    }
    unanswered_drop(unanswered, place_pool_of(place), n);
}

static void place_on_timed(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    struct place *place = place_of(lane_user);
    fair_share_note_answered(place->client, call->sent_ns, n);
    timing_note(place->client, lane_user->lane, call, n);
    drop_answered(place, n);
    if (read_side_of(place->client) != NULL)
        note_heard(place);
}

static bool place_on_not_run(struct lane_user *lane_user, const struct call *call, enum not_run row,
                             struct slice reply)
{
    struct client *client = place_of(lane_user)->client;
    return client->front->client_ops->on_not_run(place_of(lane_user), call, row, reply);
}

static void place_on_refused(struct lane_user *lane_user, enum lane_end end, struct slice reply)
{
    struct place *place = place_of(lane_user);
    if (end == END_LOGIN_REFUSED && place->proof.generation != 0) {
        auth_proof_void(&place->proof); /* weir asks the node about the client's login again */
        lease_drop(&place->shared);
        return;
    }
    place_forget_refusal(place);
    place->was_refused = true;
    /* NULL when out of memory: the client gets weir's own words */
    place->refusal = client_copy_refusal(end, reply);
}

static void place_on_heavy(struct lane_user *lane_user)
{
    client_note_heavy(place_of(lane_user)->client);
    lane_choice_note_huge(place_of(lane_user)->client);
}

static void place_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    if (!lane_user->is_paying)
        client_limit_unread(place_of(lane_user)->client, bytes);
}

static void place_on_blocking(struct lane_user *lane_user)
{
    struct client *client = place_of(lane_user)->client;
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "it does not read a reply that other clients wait behind");
    client_close_for(client, CLOSED_BUFFER);
}

/* The lane calls this function once for each of the place's calls. */
static void place_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct client *client = place_of(lane_user)->client;
    (void)lane;
    if (lane_user->lane != NULL && lane_user->in_flight > 0)
        client->front->client_ops->on_place_lost(client);
}

static void place_on_resume(struct lane_user *lane_user, enum lane_user_wait what)
{
    struct client *client = place_of(lane_user)->client;
    const struct spread *spread = client_extra(client)->spread;
    if (what == LANE_USER_HAS_LANE)
        client_resume(client, WAIT_LANE);
    else if (what == LANE_USER_HAS_REPLIES && spread_in_flight(spread) == 0)
        client_resume(client, WAIT_REPLIES);
    else if (spread->n_hops > 0)
        link_wake(&client->link);
}

static struct room_share place_share(const struct lane_user *lane_user)
{
    return session_share(
        container_of((struct lane_user *)(uintptr_t)lane_user, struct place, lane_user)->client);
}

static void place_audit(const struct lane_user *lane_user, const struct lane *lane)
{
    struct place *place =
        container_of((struct lane_user *)(uintptr_t)lane_user, struct place, lane_user);
    struct login *login = session_login(place->client);
    struct lane_key key = session_key(place->client, lane_node(lane));
    key.is_apart = lane->key.is_apart;
    assert(lane->role == LANE_SHARED && lane_key_eq(&lane->key, &key) &&
           nodes_row_of(lane) == place->row);
    assert(login == NULL || auth_proof_is_witnessed(&place->proof, &lane->base->users, login));
    assert(login == NULL || witness_suits(lane, &place->proof, login));
    assert(place->client->lane_user.in_flight == 0);
    (void)login;
}

static struct link *place_link_of(struct lane_user *lane_user)
{
    return &place_of(lane_user)->client->link;
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = place_on_bytes,
    .on_unheard = place_on_unheard,
    .on_passing = place_on_passing,
    .on_passed = place_on_passed,
    .on_counted = place_on_counted,
    .on_timed = place_on_timed,
    .on_not_run = place_on_not_run,
    .on_refused = place_on_refused,
    .on_heavy = place_on_heavy,
    .on_blocking = place_on_blocking,
    .on_unread = place_on_unread,
    .on_lost = place_on_lost,
    .on_resume = place_on_resume,
    .share = place_share,
    .audit = place_audit,
    .link = place_link_of,
};

/* ---- making and closing ---- */

static size_t place_number_of(const struct nodes *nodes, const struct nodes_row *row)
{
    size_t i = 0;
    while (nodes->rows[i] != row)
        i++;
    return i;
}

static bool place_grow(struct spread *spread, size_t n)
{
    if (n <= spread->n_places)
        return true;
    struct place **places = realloc(spread->places, n * sizeof(struct place *));
    if (places == NULL)
        return false;
    for (size_t i = spread->n_places; i < n; i++)
        places[i] = NULL;
    spread->places = places;
    spread->n_places = n;
    return true;
}

struct place *place_get(struct client *client, struct nodes_row *row)
{
    struct spread *spread = client_need_spread(client);
    if (spread == NULL)
        return NULL;
    struct place *place = spread_place(spread, row);
    if (place != NULL)
        return place;
    const struct nodes *nodes = &client->front->nodes;
    place = place_grow(spread, nodes->n) ? calloc(1, sizeof *place) : NULL;
    if (place == NULL) {
        client_close_starved(client);
        return NULL;
    }
    place->client = client;
    place->row = row;
    place->auth_generation = node_auth_generation(lanes_node(&row->lanes));
    place->lane_user.ops = &lane_user_ops;
    list_init(&place->lane_user.waiting);
    list_init(&place->in_retired);
    list_init(&place->question.in_auth_lanes);
    spread->places[place_number_of(nodes, row)] = place;
    pool_note_more(&client->front->loop->pool, sizeof *place);
    return place;
}

void place_leave(struct place *place)
{
    struct lane_user *lane_user = &place->lane_user;
    struct worker_lanes *worker_lanes = &place->client->front->nodes.worker_lanes;
    if (lane_user->absorbed > 0)
        slow_reader_absorbed(worker_lanes, lane_user);
    if (lane_user->lane != NULL && lane_user->in_flight > 0)
        remains_leave_lane_user(place->client, lane_user);
    list_take(&lane_user->waiting);
    lane_user->lane = NULL;
    lane_user->in_flight = 0;
    lane_user->wants_idle = false;
    unanswered_clear(&place->unanswered, place_pool_of(place));
    spread_end_question(place);
    auth_proof_drop(&place->proof);
    lease_drop(&place->shared);
}

void place_free(struct place *place)
{
    place_leave(place);
    pool_note_less(place_pool_of(place), sizeof *place);
    free(place->refusal);
    free(place);
}

/* ---- why there is no lane ---- */

void place_forget_refusal(struct place *place)
{
    free(place->refusal);
    place->refusal = NULL;
    place->was_refused = false;
}

enum err place_lack(const struct place *place)
{
    static const enum err weirs[] = {ERR_UPSTREAM_UNAVAILABLE, ERR_UPSTREAM_TIMEOUT};
    const struct lanes *lanes = lanes_of_place(place);
    if (place->refusal == NULL)
        return lanes->down != ERR_NONE       ? lanes->down
               : lanes->why_none == ERR_NONE ? ERR_UPSTREAM_UNAVAILABLE
                                             : ERR_UPSTREAM_BUSY;
    for (size_t i = 0; i < sizeof weirs / sizeof weirs[0]; i++)
        if (slice_eq(slice_str(place->refusal), err_text(weirs[i])))
            return weirs[i];
    return ERR_NONE;
}

struct slice place_why_none(const struct place *place)
{
    return place->refusal != NULL ? slice_str(place->refusal)
                                  : err_text(lanes_why_none(lanes_of_place(place)));
}

/* ---- the client's user ---- */

/*
 * True if the node has accepted the client's login in the present auth generation of the client's
 * user.
 */
static bool is_proven(const struct place *place)
{
    struct login *login = session_login(place->client);
    return login == NULL || auth_proof_holds((struct auth_proof *)(uintptr_t)&place->proof,
                                             &lanes_of_place(place)->base.users, login);
}

/*
 * The node refuses the client's login. If the node accepted the login before, the client is closed:
 * the node itself would have closed the client's connection.
 */
static void place_refuse(struct place *place, struct slice reply)
{
    struct client *client = place->client;
    if (place->was_proven) {
        session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                           "a node of the cluster no longer accepts its login");
        client_leave_for(client, CLOSED_UPSTREAM);
        return;
    }
    place_forget_refusal(place);
    place->was_refused = true;
    if (memchr(reply.at, '\0', reply.len) == NULL)
        place->refusal = strndup(reply.at, reply.len);
}

static void place_on_judged(struct question *question, enum judgement judgement, struct slice reply)
{
    struct place *place = container_of(question, struct place, question);
    struct client *client = place->client;
    if (judgement == JUDGED_TRUE) {
        auth_proof_copy(&place->proof, &question->proof);
        place->was_proven = true;
    } else {
        place->was_refused = true; /* JUDGED_LOST, JUDGED_NOT: the node gave no answer */
    }
    login_put(question->login);
    question->login = NULL;
    auth_proof_drop(&question->proof);
    if (judgement == JUDGED_FALSE)
        place_refuse(place, reply);
    client_resume(client, WAIT_LOGIN);
}

static void place_ask(struct place *place, struct login *login)
{
    struct question *question = &place->question;
    if (question->login == NULL) {
        *question = (struct question){.login = login_get(login), .on_judged = place_on_judged};
        list_init(&question->in_auth_lanes);
        auth_lanes_ask(&place->row->auth_lanes, question);
    }
    client_wait(place->client, WAIT_LOGIN);
}

/*
 * True if the node accepts the client's login. False: the node is being asked, and the client
 * waits.
 */
static bool place_prove(struct place *place)
{
    struct login *login = session_login(place->client);
    if (is_proven(place))
        return true;
    const struct auth_proof *proof = session_proof(place->client);
    if (auth_proof_holds((struct auth_proof *)(uintptr_t)proof, &lanes_of_place(place)->base.users,
                         login)) {
        /* the proof of the default node, where the client has logged in */
        auth_proof_copy(&place->proof, proof);
        place->was_proven = true;
        return true;
    }
    place_ask(place, login);
    return false;
}

/*
 * True if a connection of the client's user is open, and the lane may carry the client's requests.
 */
static bool place_suits(struct place *place, const struct lane *lane)
{
    struct login *login = session_login(place->client);
    return login == NULL || (auth_proof_is_witnessed(&place->proof, &lane->base->users, login) &&
                             witness_suits(lane, &place->proof, login));
}

/* ---- the lane ---- */

static enum finding wait_for(struct place *place, enum client_wait reason)
{
    client_wait(place->client, reason);
    return LANE_NOT_YET;
}

static enum finding place_find_none(struct place *place)
{
    struct lanes *lanes = lanes_of_place(place);
    if (lanes_wait_to_dial(lanes, &place->lane_user) || lanes_may_retry(lanes, &place->lane_user))
        return wait_for(place, WAIT_LANE);
    return LANE_NONE;
}

/*
 * True if a read may have a huge reply because nothing is known of the client yet. For a hop
 * (`command` is NULL) client.reader has moved on already.
 */
static bool place_is_first_read(const struct client *client, const struct command *command)
{
    if (command == NULL)
        return client->reader == READER_ASKS;
    return client->reader == READER_NEW && (command->flags & CMD_READONLY) != 0;
}

static struct lane *place_find_shared(struct place *place, const struct command *command)
{
    struct lanes *lanes = lanes_of_place(place);
    const struct lane_user *lane_user = &place->lane_user;
    struct lease *lease = &place->shared;
    const bool is_busy = lane_user->in_flight > 0 || place->n_hops > 0;
    const struct lane_key key = session_key(place->client, lanes_node(lanes));
    if (shared_is_wary(lanes) && place_is_first_read(place->client, command)) {
        struct lane *apart = shared_get_apart(lanes, &key, lane_user);
        if (apart != NULL)
            return apart;
    }
    if (lease_holds(lease) && (is_busy || !shared_is_sluggish(lease->lane)))
        return lease->lane;
    if (lane_user->in_flight > 0 && lane_user->lane->in == LIST_SHARED &&
        lane_key_eq(&lane_user->lane->key, &key))
        return lane_user->lane;
    struct lane *lane = shared_get(lanes, &key, lane_user);
    if (lane != NULL && (!lane_is_ready(lane) || place_suits(place, lane)))
        lease_take(lease, lane);
    return lane;
}

/* True if the client's first read must be answered before the next read is sent. */
static bool place_must_ask_first(struct client *client, const struct command *command)
{
    if (client->reader != READER_ASKS || command == NULL || (command->flags & CMD_READONLY) == 0)
        return false;
    if (!client_has_calls(client))
        client->reader = READER_KNOWN;
    return client->reader == READER_ASKS;
}

/*
 * True if the client has calls in flight to this node on another lane. New requests must not
 * overtake these calls.
 */
static bool is_elsewhere(const struct place *place, const struct lane *lane)
{
    return (place->lane_user.in_flight > 0 && place->lane_user.lane != lane) ||
           (place->n_hops > 0 && place->hop_lane != lane);
}

static bool place_is_far_ahead(const struct place *place)
{
    const struct lane_user *lane_user = &place->lane_user;
    return lane_user->in_flight > 0 && (lane_sent_bytes(lane_user) > SHARED_BYTES_MAX ||
                                        (client_counts(place->client, UNIT_BYTES_OUT) &&
                                         lane_user->in_flight >= UNKNOWN_CALLS));
}

/* A hop waits only for the calls of its lane, because the client already waits for the hop. */
static enum finding wait_for_replies(struct place *place, const struct command *command)
{
    if (command != NULL)
        client_wait_for_replies(place->client);
    else
        place->lane_user.wants_idle |= place->lane_user.in_flight > 0;
    return LANE_NOT_YET;
}

static enum finding find_ready(struct place *place, const struct command *command,
                               struct lane **found)
{
    struct lane *lane = place_find_shared(place, command);
    if (lane == NULL)
        return place_find_none(place);
    if (is_elsewhere(place, lane) || place_must_ask_first(place->client, command))
        return wait_for_replies(place, command);
    if (!lane_is_ready(lane) || lane_is_congested(lane)) {
        lane_wait(lane, &place->lane_user);
        return wait_for(place, WAIT_LANE);
    }
    if (!place_suits(place, lane)) {
        if (!is_proven(place))
            return LANE_UNPROVEN;
        if (witness_ask(lane, &place->proof, session_login(place->client))) {
            lane_wait(lane, &place->lane_user);
            return wait_for(place, WAIT_LANE);
        }
        auth_proof_void(&place->proof);
        lease_drop(&place->shared);
        return LANE_UNPROVEN;
    }
    if (place_is_far_ahead(place))
        return wait_for_replies(place, command);
    *found = lane;
    return LANE_FOUND;
}

enum finding place_find_lane(struct place *place, const struct command *command, struct lane **lane)
{
    struct lanes *lanes = lanes_of_place(place);
    if (remains_must_wait(place->client, lanes_node(lanes))) {
        lanes_wake_soon(lanes, &place->lane_user);
        return wait_for(place, WAIT_LANE);
    }
    enum finding finding = LANE_UNPROVEN;
    while (finding == LANE_UNPROVEN) {
        if (place->was_refused)
            return LANE_NONE;
        if (!place_prove(place))
            return LANE_NOT_YET;
        finding = find_ready(place, command, lane);
    }
    return finding;
}

/* ---- sending ---- */

static bool place_note_call(struct place *place, struct lane *lane, const struct request *request)
{
    struct client *client = place->client;
    struct lane_user *lane_user = &place->lane_user;
    uint64_t tag = timing_tag(client, request->command, request->argc);
    bool is_unheard = reply_mode_take(&client->reply_mode);
    if (!is_unheard && !spread_expect(client->extra->spread, &client->extra->replies, place, 1))
        return false;
    if (request->counted == 0 && lane_user->waited_us == 0 && !is_unheard)
        return client_counts(client, UNIT_BYTES_OUT) ? lane_call_apart(lane, lane_user, tag, 1)
                                                     : lane_call(lane, lane_user, tag, 1);
    struct call *call = lane_call_flow(lane, lane_user, FLOW_ONE, 1, tag);
    if (call == NULL)
        return false;
    call->counted = request->counted;
    call->flags = is_unheard ? CALL_MUTE : 0;
    return true;
}

void place_note_write(struct place *place, const struct command *command)
{
    if (command->is_pausable)
        place->wrote_at = coverage_time(place->client);
}

void place_send(struct place *place, struct lane *lane, const struct request *request)
{
    struct client *client = place->client;
    struct lane_user *lane_user = &place->lane_user;
    lane_user->arrived_ns = client->lane_user.arrived_ns;
    lane_user->waited_us = client->lane_user.waited_us;
    lane_choice_note_read(client, request->command);
    place_note_write(place, request->command);
    lane_count_sent(lane_user, SHARED_CALLS_FEW, (uint32_t)request->bytes.len);
    bool is_noted = unanswered_add(&place->unanswered, place_pool_of(place),
                                   keep_kind(request->command), request->bytes, 1) != NULL &&
                    place_note_call(place, lane, request);
    if (!is_noted) {
        client_close_starved(client);
        return;
    }
    fair_share_note_call(client, request->command, request->bytes.len, request->argc);
    if (request->command->is_pausable)
        coverage_note_elsewhere(client);
    lane_gather(lane, lane_user, request->bytes.at, request->bytes.len);
}
