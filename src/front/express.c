#include "front/express.h"

#include "front/account.h"
#include "front/answer.h"
#include "front/lane_choice.h"
#include "front/pacing.h"
#include "front/proof.h"
#include "front/timing.h"
#include "resp/plain.h"
#include "upstream/shared.h"

/* Nothing that the client has done before bears on a plain command of its. */
static inline bool is_unburdened(const struct client *client)
{
    const struct front *front = client->front;
    const struct extra *extra = client_extra(client);
    unsigned burdens = (unsigned)client->has_private_lane | !transaction_is_none(&client->transaction) |
                       reply_mode_is_deaf(&client->reply_mode) | client->is_raw | client->is_urgent |
                       client->was_refused | client->is_keyed | client->counts_calls | client->overflows;
    return burdens == 0 && extra->n_asked == 0 && extra->heavy_until_ns == 0 && client->reader != READER_ASKS &&
           !front->settings->lanes_private;
}

/* The lane that its commands would go to; NULL: that must be found out. */
static inline struct lane *find_lane(const struct client *client)
{
    const struct rider *rider = &client->rider;
    struct lane *lane = client->shared.lane;
    if (!lease_holds(&client->shared) || !lane_is_ready(lane) ||
        node_is_paused(lane_node(lane), client->front->loop->now_ns))
        return NULL;
    bool is_there = rider->in_flight > 0 ? rider->lane == lane : !shared_is_sluggish(lane);
    return is_there ? lane : NULL;
}

/* One request of the client's that can go now; NULL: the next must go the long way, or is not here. */
static inline const struct command *find_next(const struct client *client, const struct lane *lane,
                                              const struct request_limits *limits, const char *at, const char *end,
                                              const char **next, uint32_t *argc)
{
    struct slice name;
    struct front *front = client->front;
    if (lane_is_congested(lane) || lane_sent_bytes(&client->rider) > SHARED_BYTES_MAX || client->reader == READER_ASKS)
        return NULL;
    *next = plain_request(at, end, limits, &name, argc);
    if (*next == NULL || *next - at > LARGE_REQUEST || *next - name.at < RECENT_NAME_ROOM)
        return NULL;
    return recent_find(&front->recent, front->commands, name);
}

/* It has passed the gate. */
static inline enum route note(struct client *client, struct lane *lane, const struct command *command, uint32_t argc,
                              uint32_t n)
{
    struct rider *rider = &client->rider;
    lane_choice_note_read(client, command);
    lane_count_sent(rider, SHARED_CALLS_FEW, n);
    if (!lane_call(lane, rider, timing_tag(command, argc))) {
        client_close_starved(client);
        return ROUTE_STOP;
    }
    account_note_bytes(client, n);
    if (command->is_pausable)
        proof_note_elsewhere(client);
    front_count(client->front, command, RESULT_FORWARDED);
    return ROUTE_TAKEN;
}

enum route express_run(struct client *client, const struct request_limits *limits, struct slice bytes, size_t *used,
                       struct pace *pace)
{
    struct front *front = client->front;
    struct lane *lane = is_unburdened(client) && account_is_plain(client) ? find_lane(client) : NULL;
    const char *from = bytes.at; /* what has passed and is not yet sent begins here, ... */
    const char *at = bytes.at;   /* ... and ends here */
    const char *next;
    const struct command *command;
    uint32_t argc;
    uint32_t n = 0;
    enum route result = ROUTE_TAKEN;
    *used = 0;
    if (lane == NULL)
        return result;
    while (result == ROUTE_TAKEN && pace->left > 0 &&
           (command = find_next(client, lane, limits, at, bytes.at + bytes.len, &next, &argc)) != NULL) {
        struct verdict verdict;
        pace->left--;
        if (account_pass_plainly(client, command, &verdict)) {
            result = note(client, lane, command, argc, (uint32_t)(next - at));
            if (result == ROUTE_STOP)
                break; /* it is not sent: nobody would wait for its reply */
            n++;
        } else {
            front_count(front, command, RESULT_THROTTLED);
            timing_local(client, timing_tag(command, argc));
            lane_gather(lane, &client->rider, from, (size_t)(at - from));
            from = next;
            result = answer_over(client, &verdict);
        }
        at = next;
    }
    lane_gather(lane, &client->rider, from, (size_t)(at - from));
    pacing_note_sent(client, n);
    *used = (size_t)(at - bytes.at);
    return result;
}
