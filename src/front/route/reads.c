#include "front/route/reads.h"

#include "base/clock.h"
#include "front/route/lane_choice.h"
#include "front/client/session.h"
#include "upstream/lane/shared.h"

/*
 * time between two searches for a replica; without it, every read at the default node would search
 * (chosen)
 */
#define LOOK_NS (5 * NS_PER_MS)
/*
 * time between two waits of a client for a replica; each wait is at most 20 ms:
 * worker_lanes_wake_soon (chosen)
 */
#define HOLD_NS NS_PER_S
/* time before a replica that did not answer a login is asked again (chosen) */
#define ASK_AGAIN_NS (NS_PER_S)
/* time before a replica that refused the login is asked again; doubles each time (chosen) */
#define ASK_REFUSED_NS (10 * NS_PER_S)
#define REFUSALS_MOST 6 /* most doublings of ASK_REFUSED_NS */

static uint64_t reads_now_ns(const struct client *client)
{
    return client->front->loop->now_ns;
}

static const struct reads_settings *reads_settings_of(const struct client *client)
{
    return &client->front->nodes.worker_lanes.upstream->reads;
}

bool reads_open(struct client *client)
{
    struct front *front = client->front;
    if (reads_settings_of(client)->reads == READS_MASTER || front->settings->lanes_private)
        return true;
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return false;
    extra->read_side = read_side_new(client, front->index + front->n_read_sides++);
    if (extra->read_side == NULL)
        client_close_starved(client);
    return extra->read_side != NULL;
}

/* ---- which row a client prefers ---- */

/*
 * Returns the row that the client prefers. TOPOLOGY_DEFAULT: the client reads from the default
 * node. On a cluster: see front/cluster/shard_reads.h.
 */
static size_t preferred_row(const struct client *client)
{
    const struct read_side *reading = read_side_of(client);
    size_t n = client->front->nodes.n;
    if (n < 2 || client->front->nodes.worker_lanes.upstream->is_cluster)
        return TOPOLOGY_DEFAULT;
    if (reads_settings_of(client)->reads == READS_REPLICAS)
        return reading->number % n;
    return reading->has_asked ? 1 + reading->number % (n - 1) : TOPOLOGY_DEFAULT;
}

/* ---- one replica ---- */

static struct reach *reach_of(const struct nodes_row *row)
{
    return &lanes_node(&row->lanes)->reach;
}

static uint64_t reads_as_of(const struct client *client, const struct nodes_row *row)
{
    return reach_as_of(reach_of(row), reads_now_ns(client), reads_settings_of(client)->lag_max_ns);
}

/* True if the replica is in sync, and no connection to it was lost since the client moved there. */
static bool is_as_before(const struct client *client, const struct nodes_row *row)
{
    return reads_as_of(client, row) != 0 &&
           reach_doubts(reach_of(row)) == read_side_of(client)->doubts;
}

static void reads_on_judged(struct question *question, enum judgement judgement, struct slice reply)
{
    struct read_side *reading = container_of(question, struct read_side, question);
    uint64_t now = reads_now_ns(reading->client);
    uint64_t again_ns = ASK_AGAIN_NS;
    (void)reply;
    if (judgement == JUDGED_TRUE) {
        auth_proof_copy(&reading->proof, &question->proof);
    } else if (judgement == JUDGED_FALSE) {
        node_put(reading->refused);
        reading->refused = node_get(reading->node);
        reading->refused_until_ns = now + (ASK_REFUSED_NS << reading->n_refusals);
        again_ns =
            reading->n_refusals > 0 ? ASK_REFUSED_NS << (reading->n_refusals - 1) : ASK_AGAIN_NS;
        if (reading->n_refusals < REFUSALS_MOST)
            reading->n_refusals++;
    }
    reading->ask_ns = now + again_ns;
    login_put(question->login);
    question->login = NULL;
    auth_proof_drop(&question->proof);
}

static void reads_ask(struct client *client, struct nodes_row *row)
{
    struct read_side *reading = read_side_of(client);
    if (reading->question.login != NULL || reads_now_ns(client) < reading->ask_ns)
        return;
    reading->question =
        (struct question){.login = login_get(session_login(client)), .on_judged = reads_on_judged};
    list_init(&reading->question.in_auth_lanes);
    auth_lanes_ask(&row->auth_lanes, &reading->question);
}

/* True if Redis at the replica has accepted the client's login. Otherwise weir asks the replica. */
static bool reads_is_let_in(struct client *client, struct nodes_row *row)
{
    struct login *login = session_login(client);
    if (login == NULL)
        return !session_has_no_login(client) ||
               (node_auth_generation(lanes_node(&row->lanes)) & AUTH_GENERATION_NEEDS_AUTH) == 0;
    if (auth_proof_holds(&read_side_of(client)->proof, &row->lanes.base.users, login))
        return true;
    reads_ask(client, row);
    return false;
}

static bool reads_is_free(const struct lane *lane)
{
    return lane_is_ready(lane) && !lane_is_congested(lane) && !shared_is_sluggish(lane);
}

/*
 * True if the lease is on a ready lane to the row. False also while a lane is being opened: the
 * client does not wait for that lane.
 */
static bool get_lane(struct client *client, struct nodes_row *row, struct lease *lease)
{
    struct node *node = lanes_node(&row->lanes);
    if (lease_holds(lease) && lanes_of(lease->lane) == &row->lanes && reads_is_free(lease->lane))
        return true;
    if (!read_side_is_at_replica(client))
        read_side_of(client)->auth_generation = node_auth_generation(node);
    const struct lane_key key = session_key(client, node);
    if (lanes_is_past(&row->lanes, &key))
        return false;
    struct lane *lane = shared_get(&row->lanes, &key, &client->lane_user);
    if (lane == NULL || !reads_is_free(lane))
        return false;
    lease_take(lease, lane);
    return true;
}

/*
 * True if the lane may carry the client's requests. Otherwise weir asks another lane of the
 * client's user.
 */
static bool reads_suits(struct client *client, struct lane *lane)
{
    struct read_side *reading = read_side_of(client);
    struct login *login = session_login(client);
    if (login == NULL || witness_suits(lane, &reading->proof, login))
        return true;
    if (!witness_ask(lane, &reading->proof, login))
        auth_proof_void(&reading->proof);
    return false;
}

/* True if the client can be served at the row, apart from how recent the replica's state is. */
static bool is_ready_for(struct client *client, struct nodes_row *row, struct lease *lease)
{
    return session_is_proven(client) && session_is_witnessed(client) &&
           reads_is_let_in(client, row) && get_lane(client, row, lease) &&
           reads_suits(client, lease->lane);
}

/* ---- choosing the replica ---- */

/* True if the node refused the client's login lately. */
static bool has_refused(const struct client *client, const struct node *node)
{
    const struct read_side *reading = read_side_of(client);
    return node == reading->refused && reads_now_ns(client) < reading->refused_until_ns;
}

/*
 * Returns row i if its node may serve the client. NULL: the node does not follow the master, or
 * refused the client's login.
 */
static struct nodes_row *candidate(const struct client *client, size_t i)
{
    struct nodes_row *row = client->front->nodes.rows[i];
    const struct node *node = lanes_node(&row->lanes);
    return reads_as_of(client, row) != 0 && !has_refused(client, node) ? row : NULL;
}

static struct nodes_row *find_replica(const struct client *client)
{
    const struct read_side *reading = read_side_of(client);
    size_t n = client->front->nodes.n;
    size_t first = preferred_row(client);
    struct nodes_row *preferred = candidate(client, first);
    struct nodes_row *now = read_side_find_row(client->front, reading->node);
    if (preferred != NULL)
        return preferred;
    if (now != NULL && reads_as_of(client, now) != 0 && !has_refused(client, reading->node))
        return now;
    for (size_t i = 0; i + 1 < n; i++) {
        struct nodes_row *row = candidate(client, 1 + (first - 1 + i) % (n - 1));
        if (row != NULL)
            return row;
    }
    return NULL;
}

/*
 * Lets the client wait while master and replicas are polled. True: the client's link is woken
 * within 20 ms.
 */
static bool reads_hold(struct client *client)
{
    struct read_side *reading = read_side_of(client);
    uint64_t now = reads_now_ns(client);
    if (reading->held_ns != 0 && now < reading->held_ns + HOLD_NS)
        return false;
    reading->held_ns = now;
    reading->look_ns = 0;
    upstream_poll(client->front->nodes.worker_lanes.upstream);
    lanes_wake_soon(&front_default_row(client->front)->lanes, &client->lane_user);
    client_wait(client, WAIT_LANE);
    return true;
}

/*
 * Returns the time after which the replica's state must be. A later state includes all that the
 * client has read elsewhere.
 */
static uint64_t must_be_as_of(const struct read_side *reading, uint32_t doubts)
{
    bool is_same = reading->was_there && reading->doubts == doubts;
    return is_same || reading->there_ns < reading->seen_ns ? reading->seen_ns : reading->there_ns;
}

/* Looks for a replica for a client that is at the default node with nothing in flight. */
static enum reads_step reads_look(struct client *client)
{
    struct read_side *reading = read_side_of(client);
    struct nodes_row *row = find_replica(client);
    reading->look_ns = reads_now_ns(client) + LOOK_NS;
    if (row == NULL)
        return READS_GO;
    read_side_choose(client, lanes_node(&row->lanes));
    /*
     * `doubts` is read before as_of_ns: as_of_ns then belongs to this process of the replica, or to
     * an earlier process
     */
    uint32_t doubts = reach_doubts(reach_of(row));
    uint64_t as_of_ns = reads_as_of(client, row);
    if (as_of_ns == 0 || as_of_ns <= reading->wrote_ns ||
        !is_ready_for(client, row, &reading->other))
        return READS_GO;
    if (as_of_ns <= must_be_as_of(reading, doubts))
        return reads_hold(client) ? READS_WAIT : READS_GO;
    reading->doubts = doubts;
    read_side_enter(client);
    return READS_GO;
}

/* ---- interface ---- */

static bool may_read(const struct client *client, const struct request *request)
{
    return request->command->reads_keys && !request->is_again &&
           client_extra(client)->n_asked == 0 && transaction_is_none(&client->transaction) &&
           preferred_row(client) != TOPOLOGY_DEFAULT && !lane_choice_needs_private(client, request);
}

/* True if a client at a replica may stay there. */
static bool reads_may_stay(struct client *client)
{
    struct nodes_row *row = read_side_find_row(client->front, read_side_of(client)->node);
    if (row == NULL || !is_as_before(client, row) || !session_is_witnessed(client))
        return false;
    return client->lane_user.in_flight > 0 ? lease_holds(&client->shared)
                                           : is_ready_for(client, row, &client->shared);
}

enum reads_step reads_settle(struct client *client, const struct request *request)
{
    struct read_side *reading = read_side_of(client);
    bool may = may_read(client, request);
    if (reading->side == SIDE_REPLICA) {
        if (may && reads_may_stay(client))
            return READS_GO;
        if (client->lane_user.in_flight > 0) {
            client_wait_for_replies(client);
            return READS_WAIT;
        }
        read_side_leave(client);
    }
    if (!may || reads_now_ns(client) < reading->look_ns)
        return READS_GO;
    if (client->lane_user.in_flight == 0)
        return reads_look(client);
    /* A client that is never idle must still be able to change sides. */
    bool is_due =
        find_replica(client) != NULL && reads_now_ns(client) >= reading->drained_ns + HOLD_NS;
    reading->look_ns = reads_now_ns(client) + LOOK_NS;
    if (!is_due)
        return READS_GO;
    reading->drained_ns = reads_now_ns(client);
    reading->look_ns = 0;
    client_wait_for_replies(client);
    return READS_WAIT;
}

bool reads_give_up(struct client *client)
{
    if (!read_side_is_at_replica(client) || client->lane_user.in_flight > 0)
        return false;
    lane_choice_end_refused(client);
    client_forget_refusal(client);
    read_side_leave(client);
    read_side_of(client)->look_ns = reads_now_ns(client) + NS_PER_S;
    return true;
}

void reads_note_refused(const struct client *client)
{
    if (read_side_is_at_replica(client))
        reach_end(&read_side_of(client)->node->reach);
}

/*
 * Takes READONLY and READWRITE as a Redis cluster node does: without arguments, and only after a
 * login if a login is required.
 */
bool reads_take_word(struct client *client, const struct request *request)
{
    if (reads_settings_of(client)->reads == READS_MASTER || request->argc != 1 ||
        session_is_anonymous(client))
        return false;
    bool is_on = slice_is_word(request->name, SLICE("readonly"));
    if (!is_on && !slice_is_word(request->name, SLICE("readwrite")))
        return false;
    struct read_side *reading = read_side_of(client);
    /* with private lanes there is no read_side: all requests go to the default node */
    if (reading != NULL) {
        reading->has_asked = is_on;
        reading->look_ns = 0;
    }
    return true;
}

/* Returns why a read goes to the default node, whatever the replicas' state. NULL: no reason. */
static const char *why_default(const struct client *client, const struct command *command)
{
    if (!command->reads_keys)
        return "replicas do not serve the command";
    if (client_has_own_lane(client))
        return "the client has a private connection";
    if (client->front->nodes.n < 2)
        return "there is no replica";
    if (preferred_row(client) != TOPOLOGY_DEFAULT)
        return NULL;
    return reads_settings_of(client)->reads == READS_ASKED
               ? "the client has not sent READONLY"
               : "the master serves this client's share of reads";
}

/*
 * Returns why a read goes to the default node because of the replicas' state. NULL: the read goes
 * to the replica.
 */
static const char *why_not_there(const struct client *client, const struct nodes_row *row)
{
    struct read_side *reading = read_side_of(client);
    struct login *login = session_login(client);
    if (row == NULL)
        return "no replica is in sync";
    if (reads_as_of(client, row) <= reading->wrote_ns)
        return "no replica is known to have the client's last write";
    if (login != NULL && !auth_proof_holds(&reading->proof, &row->lanes.base.users, login))
        return "the replica has not accepted the client's login";
    if (reads_as_of(client, row) <= must_be_as_of(reading, reach_doubts(reach_of(row))))
        return "no replica is known to have what the client has read";
    return NULL;
}

const struct node *reads_explain(const struct client *client, const struct command *command,
                                 const char **why)
{
    const struct nodes_row *row = NULL;
    *why = why_default(client, command);
    if (*why == NULL) {
        row = find_replica(client);
        *why = why_not_there(client, row);
    }
    if (*why != NULL)
        return front_default_node(client->front);
    *why = "the replica is in sync, and has all that the client has read";
    return lanes_node(&row->lanes);
}

enum reads_kind reads_kind_now(const struct client *client)
{
    const struct read_side *reading = read_side_of(client);
    if (reading->side == SIDE_REPLICA) {
        const struct nodes_row *row = read_side_find_row(client->front, reading->node);
        bool stays = row != NULL && is_as_before(client, row) && session_is_witnessed(client);
        return stays ? READS_READS : READS_NONE;
    }
    bool is_settled =
        preferred_row(client) == TOPOLOGY_DEFAULT || reads_now_ns(client) < reading->look_ns;
    return is_settled ? READS_ANY : READS_OTHERS;
}
