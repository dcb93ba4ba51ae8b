#include "front/route/express_slots.h"

#include "front/client/account.h"
#include "front/client/answer.h"
#include "front/route/keep.h"
#include "front/route/lane_choice.h"
#include "front/route/place.h"
#include "front/route/places.h"
#include "front/client/remains.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"
#include "limit/command/keys.h"
#include "resp/plain.h"
#include "upstream/lane/shared.h"

#define BATCH_MOST 64    /* requests that are charged at a time */
#define BATCH_BYTES 4096 /* bytes of a stretch with more than one request, as in express.c */
#define ROWS_MOST 64     /* nodes behind these are reached the long way */

/*
 * Requests of one command, with as many arguments, that lie one behind the other, each for a place
 * that is ready.
 */
struct stretch {
    const struct command *command;
    uint32_t argc;
    uint32_t n; /* 0: the next request must go the long way, or is not here */
    const char *ends[BATCH_MOST];
    uint8_t rows[BATCH_MOST];
};

/* Which places have been looked at, and are ready: bits by row. */
struct places_seen {
    uint64_t looked, ready;
};

/* True if requests may go to the place as they are. */
static bool is_ready(const struct client *client, struct place *place)
{
    struct rider *rider = &place->rider;
    const struct lane *lane = place->shared.lane;
    if (!lease_holds(&place->shared) || !lane_is_ready(lane) || lane_is_congested(lane) || place->was_refused ||
        place->n_hops > 0 || node_is_paused(lane_node(lane), client->front->loop->now_ns) ||
        remains_must_wait(client, lane_node(lane)) || lane_sent_bytes(rider) > SHARED_BYTES_MAX)
        return false;
    if (rider->in_flight > 0 ? rider->lane != lane : shared_is_sluggish(lane))
        return false;
    rider->arrived_ns = client->rider.arrived_ns;
    rider->waited_us = client->rider.waited_us;
    return true;
}

static inline bool may_go_to(const struct client *client, struct places_seen *seen, uint16_t row)
{
    const struct spread *spread = client->extra->spread;
    if (row >= ROWS_MOST || row >= spread->n_places || spread->places[row] == NULL)
        return false;
    const uint64_t bit = UINT64_C(1) << row;
    if ((seen->looked & bit) == 0) {
        seen->looked |= bit;
        seen->ready |= is_ready(client, spread->places[row]) ? bit : 0;
    }
    return (seen->ready & bit) != 0;
}

/* True if its second argument is its only key. */
static inline bool has_one_key(const struct command *command, uint32_t argc)
{
    int32_t last = command->last_key >= 0 ? command->last_key : (int32_t)argc + command->last_key;
    return command->keys == KEYS_POSITION && command->first_key == 1 && last >= 1 && last <= command->key_step;
}

/* The client's next requests that are alike and can go now. */
static inline void find(const struct client *client, struct stretch *stretch, struct places_seen *seen,
                        const struct pace *pace, const struct request_limits *limits, const char *at, const char *end)
{
    struct slice name;
    struct front *front = client->front;
    const struct slot_map *map = front->nodes.topology->slots;
    const char *const begin = at;
    const char *next = plain_request(at, end, limits, &name, &stretch->argc);
    stretch->n = 0;
    if (next == NULL || next - at > LARGE_REQUEST || end - name.at < RECENT_NAME_ROOM)
        return;
    stretch->command = recent_find(&front->recent, front->commands, name);
    if (stretch->command == NULL || !has_one_key(stretch->command, stretch->argc))
        return;
    bool goes_alone = lane_choice_asks_size(client, stretch->command);
    const struct key_filter *several = &client->extra->spread->several;
    bool is_read = keep_kind(stretch->command) == KEPT_READ;
    size_t head = plain_head(at, name);
    uint32_t most = pace_most(pace, command_cost_ns(stretch->command));
    if (most == 0)
        return;
    most = most < BATCH_MOST ? most : BATCH_MOST;
    do {
        uint32_t len = 0;
        const char *key = plain_bulk(at + head, end, &len);
        uint16_t row = slot_map_row(map, slot_of(slice_of(key, len)));
        if (!may_go_to(client, seen, row) ||
            (several->is_used && key_filter_bars(several, slice_of(key, len), is_read)))
            break;
        stretch->rows[stretch->n] = (uint8_t)row;
        stretch->ends[stretch->n++] = next;
        at = next;
        next = goes_alone ? NULL : plain_request_like(at, end, limits, begin, head, stretch->argc);
    } while (next != NULL && stretch->n < most && next - begin <= BATCH_BYTES);
    if (slot_map_version(map) != client->extra->spread->version)
        stretch->n = 0; /* read behind the rows: slot_map.h */
}

/* Neighbours that go to the same place. False: out of memory, the client is closed. */
static inline bool send_some(struct client *client, struct place *place, const struct stretch *stretch, const char *at,
                             uint32_t n, const char *end)
{
    struct rider *rider = &place->rider;
    struct lane *lane = place->shared.lane;
    uint32_t bytes = (uint32_t)(end - at);
    if (stretch->command->is_pausable)
        place->wrote_at = coverage_time(client);
    lane_count_sent(rider, SHARED_CALLS_FEW, bytes);
    if (!spread_turn(client->extra->spread, &client->extra->replies, place, n) ||
        unanswered_add_more(&place->unanswered, &client->front->loop->pool, keep_kind(stretch->command),
                            slice_of(at, bytes), n) == NULL ||
        !lane_call(lane, rider, timing_tag(client, stretch->command, stretch->argc), n)) {
        client_close_starved(client);
        return false;
    }
    lane_gather(lane, rider, at, bytes);
    return true;
}

/* The first n, from `at` on, have passed the gate. */
static bool send_all(struct client *client, const struct stretch *stretch, const char *at, uint32_t n)
{
    const char *const begin = at;
    struct place *const *places = client->extra->spread->places;
    lane_choice_note_read(client, stretch->command);
    for (uint32_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && stretch->rows[to] == stretch->rows[i];)
            to++;
        if (!send_some(client, places[stretch->rows[i]], stretch, at, to - i, stretch->ends[to - 1]))
            return false;
        at = stretch->ends[to - 1];
    }
    account_note_bytes(client, (uint32_t)(at - begin));
    if (stretch->command->is_pausable)
        coverage_note_elsewhere(client);
    front_count_many(client->front, stretch->command, RESULT_FORWARDED, n);
    return true;
}

/* The last n have not. */
static enum route refuse(struct client *client, const struct stretch *stretch, uint32_t n,
                         const struct verdict *verdict)
{
    front_count_many(client->front, stretch->command, RESULT_THROTTLED, n);
    timing_local(client, timing_tag(client, stretch->command, stretch->argc), n);
    return answer_over(client, verdict, n);
}

/* True if nothing that is in flight bears on where the next request goes. */
static bool is_settled(const struct client *client)
{
    const struct spread *spread = client_spread(client);
    return spread != NULL && !spread->is_stale && spread->n_held == 0 && client->rider.in_flight == 0;
}

enum route express_slots_run(struct client *client, const struct request_limits *limits, struct slice bytes,
                             size_t *used, struct pace *pace)
{
    const char *at = bytes.at;
    struct places_seen seen = {0};
    struct stretch stretch;
    uint32_t n_sent = 0;
    uint64_t work_ns = 0;
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN && is_settled(client) && client->reader != READER_ASKS) {
        struct verdict verdict;
        find(client, &stretch, &seen, pace, limits, at, bytes.at + bytes.len);
        if (stretch.n == 0)
            break;
        uint32_t n = account_pass_plainly(client, stretch.command, stretch.n, &verdict);
        if (n > 0 && !send_all(client, &stretch, at, n)) {
            result = ROUTE_STOP;
            break;
        }
        n_sent += n;
        work_ns += n * (uint64_t)command_cost_ns(stretch.command);
        at = stretch.ends[stretch.n - 1];
        pace_take(pace, stretch.n, command_cost_ns(stretch.command));
        if (n < stretch.n)
            result = refuse(client, &stretch, stretch.n - n, &verdict);
    }
    fair_share_note_sent(client, n_sent, work_ns + fair_share_bytes_ns((uint64_t)(at - bytes.at)));
    *used = (size_t)(at - bytes.at);
    return result;
}
