#include "front/route/express.h"

#include "front/client/account.h"
#include "front/client/answer.h"
#include "front/route/express_slots.h"
#include "front/route/keep.h"
#include "front/route/lane_choice.h"
#include "front/route/fair_share.h"
#include "front/route/places.h"
#include "front/route/reads.h"
#include "front/session/wait_coverage.h"
#include "front/client/remains.h"
#include "front/client/timing.h"
#include "resp/plain.h"
#include "upstream/lane/shared.h"

/* May its next read be one of many behind which others' calls come? */
static inline bool is_no_stranger(const struct client *client)
{
    return client->reader == READER_KNOWN ||
           (client->reader == READER_NEW && !shared_is_wary(&front_home(client->front)->lanes));
}

/* Nothing that the client has done before bears on a plain command of its. */
static inline bool is_unburdened(const struct client *client)
{
    if (client->unbound != NULL)
        return false; /* the command may bind it */
    const struct front *front = client->front;
    const struct extra *extra = client_extra(client);
    unsigned burdens = (unsigned)client_has_own_lane(client) | !transaction_is_none(&client->transaction) |
                       reply_mode_is_deaf(&client->reply_mode) | client->was_refused | client->is_keyed |
                       subject_is_overflow(client->subject) | client_is_operator(client);
    return burdens == 0 && extra->n_asked == 0 && extra->n_subscribed == 0 && extra->heavy_until_ns == 0 &&
           is_no_stranger(client) && !front->settings->lanes_private;
}

/* The lane that its commands would go to; NULL: that must be found out. */
static inline struct lane *find_lane(const struct client *client)
{
    const struct rider *rider = &client->rider;
    struct lane *lane = client->shared.lane;
    if (!lease_holds(&client->shared) || !lane_is_ready(lane) ||
        node_is_paused(lane_node(lane), client->front->loop->now_ns) || remains_must_wait(client, lane_node(lane)))
        return NULL;
    bool is_there = rider->in_flight > 0 ? rider->lane == lane : !shared_is_sluggish(lane);
    return is_there ? lane : NULL;
}

/*
 * Requests of one command, with as many arguments, that lie one behind the other. They come at one time and are bound
 * by the same limits, so what becomes of each can be decided for all of them at once.
 */
struct stretch {
    const char *at; /* the first begins here, ... */
    const char *end;
    const struct command *command;
    uint32_t argc;
    uint32_t n; /* 0: the next request must go the long way, or is not here */
};

/*
 * Bytes of a stretch with more than one request. The questions that are asked once for a stretch (does the client
 * send more than may be under way on a shared lane?) are asked again after so many.
 */
#define STRETCH_BYTES 4096

/* The client's next requests that are alike and can go now to this lane; NULL: there is none yet. */
static inline struct stretch find_stretch(const struct client *client, const struct lane *lane, const struct pace *pace,
                                          enum reads_kind kind, const struct request_limits *limits, const char *at,
                                          const char *end)
{
    struct slice name;
    struct stretch stretch = {.at = at, .n = 0};
    struct front *front = client->front;
    if ((lane != NULL && lane_is_congested(lane)) || lane_sent_bytes(&client->rider) > SHARED_BYTES_MAX ||
        client->reader == READER_ASKS)
        return stretch;
    const char *next = plain_request(at, end, limits, &name, &stretch.argc);
    if (next == NULL || next - at > LARGE_REQUEST || end - name.at < RECENT_NAME_ROOM)
        return stretch;
    stretch.command = recent_find(&front->recent, front->commands, name);
    if (stretch.command == NULL || !reads_fits(kind, stretch.command))
        return stretch;
    const uint32_t most = pace_most(pace, command_cost_ns(stretch.command));
    if (most == 0)
        return stretch;
    bool goes_alone = lane != NULL && lane_choice_asks_size(client, stretch.command);
    size_t head = plain_head(at, name);
    do {
        stretch.end = next;
        stretch.n++;
        next = goes_alone ? NULL : plain_request_like(stretch.end, end, limits, at, head, stretch.argc);
    } while (next != NULL && stretch.n < most && next - at <= STRETCH_BYTES);
    return stretch;
}

/* Where the first n of the stretch end. */
static const char *end_of(const struct stretch *stretch, const struct request_limits *limits, uint32_t n)
{
    struct slice name;
    uint32_t argc;
    const char *at = stretch->at;
    if (n == stretch->n)
        return stretch->end;
    for (; n > 0; n--)
        at = plain_request(at, stretch->end, limits, &name, &argc);
    return at;
}

/* The first n, which end there, have passed the gate. False: out of memory, the client is closed. */
static inline bool note(struct client *client, struct lane *lane, const struct stretch *stretch, uint32_t n,
                        const char *end)
{
    struct rider *rider = &client->rider;
    uint32_t bytes = (uint32_t)(end - stretch->at);
    lane_choice_note_read(client, stretch->command);
    lane_count_sent(rider, SHARED_CALLS_FEW, bytes);
    if (!keep(client, lane, stretch->command, slice_of(stretch->at, bytes), n) ||
        !lane_call(lane, rider, timing_tag(client, stretch->command, stretch->argc), n)) {
        client_close_starved(client);
        return false;
    }
    account_note_bytes(client, bytes);
    if (stretch->command->is_pausable)
        coverage_note_elsewhere(client);
    front_count_many(client->front, stretch->command, RESULT_FORWARDED, n);
    return true;
}

/* The last n of the stretch have not. */
static enum route refuse(struct client *client, const struct stretch *stretch, uint32_t n,
                         const struct verdict *verdict)
{
    front_count_many(client->front, stretch->command, RESULT_THROTTLED, n);
    timing_local(client, timing_tag(client, stretch->command, stretch->argc), n);
    return answer_over(client, verdict, n);
}

/* What is refused needs no lane; what passes must find one before it is charged, and that is the long way. */
static enum route refuse_without_lane(struct client *client, const struct request_limits *limits, struct slice bytes,
                                      size_t *used, struct pace *pace)
{
    const char *at = bytes.at;
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN) {
        struct verdict verdict;
        const struct stretch stretch = find_stretch(client, NULL, pace, READS_ANY, limits, at, bytes.at + bytes.len);
        if (stretch.n == 0 || !account_refuse_plainly(client, stretch.command, stretch.n, &verdict))
            break;
        at = stretch.end;
        pace->left -= stretch.n;
        result = refuse(client, &stretch, stretch.n, &verdict);
    }
    *used = (size_t)(at - bytes.at);
    return result;
}

/* To that lane: all that passes, with refusals in between. */
static enum route send_along(struct client *client, struct lane *lane, const struct request_limits *limits,
                             struct slice bytes, size_t *used, struct pace *pace)
{
    const char *from = bytes.at; /* what has passed and is not yet sent begins here, ... */
    const char *at = bytes.at;   /* ... and ends here */
    uint32_t n = 0;
    uint64_t work_ns = 0;
    const enum reads_kind kind = read_side_of(client) == NULL ? READS_ANY : reads_kind_now(client);
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN) {
        struct verdict verdict;
        const struct stretch stretch = find_stretch(client, lane, pace, kind, limits, at, bytes.at + bytes.len);
        if (stretch.n == 0)
            break;
        uint32_t n_passed = account_pass_plainly(client, stretch.command, stretch.n, &verdict);
        const char *passed = end_of(&stretch, limits, n_passed);
        if (n_passed > 0 && !note(client, lane, &stretch, n_passed, passed)) {
            result = ROUTE_STOP;
            break; /* they are not sent: nobody would wait for their replies */
        }
        work_ns += n_passed * (uint64_t)command_cost_ns(stretch.command);
        at = passed;
        n += n_passed;
        pace_take(pace, stretch.n, command_cost_ns(stretch.command));
        if (n_passed < stretch.n) {
            lane_gather(lane, &client->rider, from, (size_t)(at - from));
            from = at = stretch.end;
            result = refuse(client, &stretch, stretch.n - n_passed, &verdict);
        }
    }
    lane_gather(lane, &client->rider, from, (size_t)(at - from));
    fair_share_note_sent(client, n, work_ns + fair_share_bytes_ns((uint64_t)(at - bytes.at)));
    *used = (size_t)(at - bytes.at);
    return result;
}

enum route express_run(struct client *client, const struct request_limits *limits, struct slice bytes, size_t *used,
                       struct pace *pace)
{
    *used = 0;
    if (!is_unburdened(client) || !account_is_plain(client))
        return ROUTE_TAKEN;
    if (places_are_used(client) && read_side_of(client) != NULL)
        return ROUTE_TAKEN; /* each read may go to one of several nodes: front/cluster/shard_reads.h */
    account_begin(client);
    if (places_are_used(client))
        return express_slots_run(client, limits, bytes, used, pace);
    struct lane *lane = find_lane(client);
    if (lane != NULL)
        return send_along(client, lane, limits, bytes, used, pace);
    if (!lease_holds(&client->shared))
        return refuse_without_lane(client, limits, bytes, used, pace);
    return ROUTE_TAKEN;
}
