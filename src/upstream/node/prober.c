#include "upstream/node/prober.h"

#include "limit/command/command.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/shared.h"

/*
 * HELLOs of one probe. Bytes that weir had queued are sent once the first answer is back, before
 * the second HELLO. Redis may process these bytes after the second HELLO. Redis then sends the
 * answer to these bytes with the second or third answer to HELLO. weir reads the answer to these
 * bytes in the iteration that reads the third answer to HELLO, perhaps after that answer.
 */
#define ROUNDS 4

/* HELLO needs no rights, and changes nothing. */
static const char hello_request[] = "*1\r\n$5\r\n" OWN_HELLO "\r\n";

static void prober_give_up(struct prober *prober)
{
    struct list now;
    list_take_all(&now, &prober->waiting);
    while (!list_is_empty(&now)) {
        struct probe *probe = container_of(now.next, struct probe, in_prober);
        list_take(&probe->in_prober);
        probe->on_over(probe);
    }
}

/* Returns a lane to wait for first, or NULL. */
static struct lane *prober_ask(struct prober *prober)
{
    if (prober->is_asking || list_is_empty(&prober->waiting))
        return NULL;
    const struct lane_key newcomer = lanes_newcomer(prober->lanes);
    struct lane *lane = shared_get(prober->lanes, &newcomer, &prober->lane_user);
    if (lane != NULL && !lane_is_ready(lane))
        return lane;
    struct call *call =
        lane != NULL ? lane_call_flow(lane, &prober->lane_user, FLOW_ONE, 1, 0) : NULL;
    if (call == NULL) {
        prober_give_up(prober);
        return NULL;
    }
    prober->is_asking = true;
    call->flags = CALL_MUTE | CALL_LOOK;
    lane_send(lane, &prober->lane_user, hello_request, sizeof hello_request - 1);
    return NULL;
}

static void prober_on_answer(struct lane_user *lane_user, const struct call *call,
                             const struct glimpse *reply)
{
    (void)call;
    (void)reply;
    struct prober *prober = container_of(lane_user, struct prober, lane_user);
    struct list now;
    prober->is_asking = false;
    list_take_all(&now, &prober->waiting);
    while (!list_is_empty(&now)) {
        struct probe *probe = container_of(now.next, struct probe, in_prober);
        list_take(&probe->in_prober);
        if (--probe->rounds > 0)
            list_push(&prober->waiting, &probe->in_prober);
        else
            probe->on_over(probe);
    }
    if (prober_ask(prober) != NULL)
        prober_give_up(prober); /* the lane has closed meanwhile */
}

static void prober_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane;
    struct prober *prober = container_of(lane_user, struct prober, lane_user);
    lane_user->in_flight = 0;
    prober->is_asking = false;
    prober_give_up(prober);
}

static const struct lane_user_ops lane_user_ops = {.on_answer = prober_on_answer,
                                                   .on_lost = prober_on_lost};

void prober_init(struct prober *prober, struct lanes *lanes)
{
    *prober = (struct prober){.lane_user = {.ops = &lane_user_ops}, .lanes = lanes};
    list_init(&prober->lane_user.waiting);
    list_init(&prober->waiting);
}

struct lane *prober_start(struct prober *prober, struct probe *probe)
{
    /* A HELLO in flight may be older than the call in question, and does not count. */
    probe->rounds = prober->is_asking ? ROUNDS + 1 : ROUNDS;
    list_take(&probe->in_prober);
    list_push(&prober->waiting, &probe->in_prober);
    return prober_ask(prober);
}

void prober_cancel(struct probe *probe)
{
    list_take(&probe->in_prober);
}

void prober_fini(struct prober *prober)
{
    struct list gone;
    list_take_all(&gone, &prober->waiting);
    while (!list_is_empty(&gone))
        list_take(gone.next);
}
