#include "tests/sim/wait_laws.h"

#include <assert.h>

#include "front/client/again.h"
#include "front/client/client.h"
#include "front/life.h"
#include "front/client/meter.h"
#include "front/route/outage.h"
#include "front/route/places.h"
#include "front/cluster/spread.h"
#include "front/route/target.h"
#include "tests/sim/deployment.h"
#include "tests/sim/world.h"

#define FRONTS_MAX 8
#define WATCHED_MAX 256
#define AWAY_MOST_NS (1 * NS_PER_S)     /* longest failover-wait of a plan */
#define AWAY_GRACE_NS (100 * NS_PER_MS) /* one iteration of the loop, and of its clock */

static struct front *known[FRONTS_MAX];
static unsigned n_known;

/*
 * ---- registry of fronts: the linker replaces weir's functions by these (WATCHED in Makefile) ----
 */

void __real_front_init(struct front *front, struct loop *loop, struct front_settings *settings,
                       unsigned index, void *worker, const struct tables *tables);
void __wrap_front_init(struct front *front, struct loop *loop, struct front_settings *settings,
                       unsigned index, void *worker, const struct tables *tables);
void __real_front_close(struct front *front);
void __wrap_front_close(struct front *front);

void __wrap_front_init(struct front *front, struct loop *loop, struct front_settings *settings,
                       unsigned index, void *worker, const struct tables *tables)
{
    __real_front_init(front, loop, settings, index, worker, tables);
    assert(n_known < FRONTS_MAX);
    known[n_known++] = front;
}

void __wrap_front_close(struct front *front)
{
    __real_front_close(front);
    for (unsigned i = 0; i < n_known; i++)
        if (known[i] == front)
            known[i--] = known[--n_known];
}

/* ---- what resumes a client, by reason ---- */

/* True if `does` holds for one of the client's lane users at the nodes of a cluster. */
static bool does_one(const struct client *client, bool (*does)(const struct place *place))
{
    const struct spread *spread = client_extra(client)->spread;
    bool does_so = false;
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++)
        does_so |= spread->places[i] != NULL && does(spread->places[i]);
    return does_so;
}

static bool is_queued(const struct place *place)
{
    return !list_is_empty(&place->lane_user.waiting);
}

static bool is_asked(const struct place *place)
{
    return place->question.login != NULL;
}

static bool wants_idle(const struct place *place)
{
    return place->lane_user.wants_idle && place->lane_user.in_flight > 0;
}

static bool will_be_answered(const struct client *client)
{
    return client->lane_user.in_flight > 0 || spread_in_flight(client_extra(client)->spread) > 0;
}

static bool will_be_idle(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    if (does_one(client, wants_idle) ||
        (client_extra(client)->spread != NULL && client_extra(client)->spread->n_hops > 0))
        return true;
    return client->lane_user.wants_idle &&
           (client->lane_user.in_flight > 0 || (lane != NULL && lane_is_in_message(lane)));
}

static bool will_have_lane(const struct client *client)
{
    return !list_is_empty(&client->lane_user.waiting) || does_one(client, is_queued);
}

static bool will_be_in(const struct client *client)
{
    return client_extra(client)->login != NULL || does_one(client, is_asked);
}

static bool will_be_due(const struct client *client)
{
    return client->meter != NULL && alarm_is_set(&client->meter->delay);
}

static bool will_have_paid(const struct client *client)
{
    return client->meter != NULL && alarm_is_set(&client->meter->payments[0]);
}

static bool will_have_share(const struct client *client)
{
    const struct fair_queue *queue = front_default_row(client->front)->lanes.base.fair;
    const struct sender *sender =
        client->lane_user.sender != 0 ? fair_sender(queue, client->lane_user.sender) : NULL;
    return sender != NULL && (!list_is_empty(&sender->in_flow) || sender->is_crowding);
}

/* A client that waits for a worker is among the clients woken next, which are not judged. */
static bool will_have_worker(const struct client *client)
{
    (void)client;
    return false;
}

static bool will_be_decided(const struct client *client)
{
    return client_extra(client)->n_asked > 0;
}

static bool will_be_carried_out(const struct client *client)
{
    return client_extra(client)->admin_command != NULL;
}

static bool will_be_looked_at(const struct client *client)
{
    return count_read(&client->front->counts.stalled) > 0;
}

/* Without upstream-timeout only Redis ends the wait for a silent Redis. */
static bool will_be_over(const struct client *client)
{
    const struct outage *outage = client_extra(client)->outage;
    bool may_last = target_row(client)->lanes.down == ERR_UPSTREAM_TIMEOUT &&
                    client->front->nodes.worker_lanes.upstream->timeout_ns == 0;
    may_last |= client->bound != NULL && client->bound->is_admin;
    return outage != NULL && !list_is_empty(&outage->in_front) &&
           (alarm_is_set(&outage->over) || may_last);
}

static bool will_be_sent_again(const struct client *client)
{
    const struct spread *spread = client_extra(client)->spread;
    if ((spread != NULL && spread->n_hops > 0) || client_extra(client)->carry != NULL)
        return true; /* hops and a carry have alarms of their own */
    if (client_is_on_cluster(client) && will_be_answered(client))
        return true; /* the queue of MULTI was sent to another node */
    return client->lane_user.is_returning && alarm_is_set(&client_extra(client)->again->alarm);
}

/*
 * `most_s`: the longest wait that the reason allows, in s; for WAIT_ROW_AGAIN in addition to
 * failover-wait. 0: as long as Redis, a limit or the client itself takes.
 */
static const struct law {
    const char *text;
    bool (*holds)(const struct client *client);
    uint64_t most_s;
} laws[WAIT_ROWS] = {
    [WAIT_ROW_ANSWER] = {"a client waits for an answer, and none is to come", will_be_answered, 0},
    [WAIT_ROW_REPLIES] = {"a client waits for its replies, and nothing wakes it behind the last",
                          will_be_idle, 0},
    [WAIT_ROW_LANE] = {"a client waits for a lane, and is in no list of those that do",
                       will_have_lane, 120},
    [WAIT_ROW_LOGIN] = {"a client waits for its login, and none is under way", will_be_in, 120},
    [WAIT_ROW_DELAY] = {"a client is delayed by a limit, and no alarm is set", will_be_due, 0},
    [WAIT_ROW_BYTES] = {"a client waits for a limit on bytes, and no alarm is set", will_have_paid,
                        0},
    [WAIT_ROW_SHARE] = {"a client waits for its fair share, and is in no queue", will_have_share,
                        120},
    [WAIT_ROW_WORKER] = {"a client waits for its worker, and is not woken next", will_have_worker,
                         1},
    [WAIT_ROW_DECISION] = {"a client waits for a decision, and none is asked for", will_be_decided,
                           0},
    [WAIT_ROW_ADMIN] = {"a client waits for an admin command, and none is under way",
                        will_be_carried_out, 120},
    [WAIT_ROW_UPSTREAM] = {"a client waits for Redis to be back, and no alarm is set", will_be_over,
                           0},
    [WAIT_ROW_AGAIN] = {"a client waits for calls to be sent again, and no alarm is set",
                        will_be_sent_again, 1},
    [WAIT_ROW_MEMORY] = {"a client waits for memory, and none is known to", will_be_looked_at, 0},
};

static const char *const late[] = {
    [WAIT_ROW_LANE] = "a client waits for a lane for longer than that may take",
    [WAIT_ROW_LOGIN] = "a client waits for its login for longer than that may take",
    [WAIT_ROW_SHARE] = "a client waits for its fair share for longer than that may take",
    [WAIT_ROW_WORKER] = "a client waits for its worker for longer than that may take",
    [WAIT_ROW_AGAIN] = "a client waits for calls to be sent again for longer than failover-wait",
    [WAIT_ROW_ADMIN] = "a client waits for an admin command for longer than that may take",
};

/* ---- how long ---- */

static struct watched {
    const struct client *client;
    uint64_t since_ns[WAIT_ROWS];
    uint64_t output; /* bytes sent to the client when away_ns was set */
    /* since when the client has waited for a Redis that is away, over all retries; 0: no wait */
    uint64_t away_ns;
    uint64_t looked_step;
} watched[WATCHED_MAX];
static unsigned n_watched;

/* NULL: no room for another client. */
static struct watched *find_watched(const struct client *client)
{
    unsigned i = 0;
    while (i < n_watched && watched[i].client != client)
        i++;
    if (i == WATCHED_MAX)
        return NULL;
    if (i == n_watched)
        watched[n_watched++] = (struct watched){.client = client};
    watched[i].looked_step = world.steps;
    return &watched[i];
}

/* Forgets clients that do not wait any more, or are closed. */
static void forget_others(void)
{
    for (unsigned i = 0; i < n_watched; i++)
        if (watched[i].looked_step != world.steps)
            watched[i--] = watched[--n_watched];
}

static uint64_t away_most_ns(void)
{
    return deployment_is_pure() ? DEPLOYMENT_WAIT_NS : AWAY_MOST_NS;
}

static bool is_late(const struct client *client, struct watched *at, int row)
{
    uint64_t now_ns = client->front->loop->now_ns;
    if (!client_waits_for(client, 1U << row)) {
        at->since_ns[row] = 0;
        return false;
    }
    if (at->since_ns[row] == 0)
        at->since_ns[row] = now_ns;
    uint64_t most_ns = laws[row].most_s * NS_PER_S;
    if (row == WAIT_ROW_AGAIN)
        most_ns += away_most_ns();
    if (row == WAIT_ROW_AGAIN && client_is_on_cluster(client))
        /* on a cluster hops may follow each other for as long as the client sends requests */
        return false;
    return most_ns != 0 && now_ns - at->since_ns[row] > most_ns;
}

/*
 * True if the client has waited for longer than failover-wait, and is neither closed nor answered.
 */
static bool outlasts(const struct client *client, struct watched *at)
{
    uint64_t now_ns = client->front->loop->now_ns;
    /* on a cluster the lanes of the next request's node */
    const struct lanes *lanes = &target_row(client)->lanes;
    bool is_away = lanes->down == ERR_UPSTREAM_UNAVAILABLE;
    uint64_t output = client->link.n_written + link_pending(&client->link);
    bool is_silent = is_away && lanes_is_taken(lanes); /* Redis is back */
    /* handshakes of operators wait for Redis */
    bool is_operators = client->bound != NULL && client->bound->is_admin;
    if (!is_away || is_operators || client_extra(client)->outage == NULL) {
        at->away_ns = 0;
        return false;
    }
    /* the previous request had no reply (CLIENT REPLY) */
    bool is_next = client_extra(client)->outage->since_ns >= at->away_ns + away_most_ns();
    /* the previous request went to another node */
    is_next |= client_is_on_cluster(client) && client->lane_user.arrived_ns > at->away_ns;
    /* the next request has its own time */
    if (at->away_ns == 0 || output != at->output || is_next) {
        at->away_ns = now_ns;
        at->output = output;
    }
    unsigned times = client_extra(client)->outage->is_handshake ? OUTAGE_HANDSHAKE_WAITS : 1;
    /* an older request is in flight, and has its own time */
    bool has_older = spread_in_flight(client_extra(client)->spread) > 0;
    return !is_silent && !has_older &&
           now_ns > at->away_ns + times * away_most_ns() + AWAY_GRACE_NS;
}

/* ---- all laws ---- */

/* True if no request of the client is left to take. */
static bool has_taken_all(const struct client *client)
{
    const struct intake *in = client->intake;
    return in == NULL || client_extra(client)->passage != NULL ||
           (!in->has_frame && in->scanned == in->filled);
}

/* A client that is woken next has been resumed, or checks again. */
static const char *broken_by(const struct client *client)
{
    struct watched *at = client_extra(client)->outage != NULL ? find_watched(client) : NULL;
    if (client->state != CLIENT_OPEN || !list_is_empty(&client->link.woken))
        return NULL;
    if (at != NULL && outlasts(client, at))
        return "a client waits for Redis for longer than failover-wait";
    if (client->waits == 0)
        return has_taken_all(client) ? NULL
                                     : "a client waits for nothing, and its requests are not taken";
    at = find_watched(client);
    if (at != NULL && client_extra(client)->outage == NULL)
        at->away_ns = 0; /* the next wait belongs to another outage */
    for (int row = 0; row < WAIT_ROWS; row++) {
        assert(laws[row].holds != NULL); /* each reason has a law */
        if (client_waits_for(client, 1U << row) && !laws[row].holds(client))
            return laws[row].text;
        if (at != NULL && is_late(client, at, row))
            return late[row];
    }
    return NULL;
}

const char *wait_laws_broken(void)
{
    const char *broken = NULL;
    for (unsigned i = 0; i < n_known && broken == NULL; i++) {
        const struct list *clients = &known[i]->clients;
        for (const struct list *at = clients->next; at != clients && broken == NULL; at = at->next)
            broken = broken_by(container_of(at, struct client, in_front));
    }
    forget_others();
    return broken;
}
