#include "front/route/fast_path.h"

#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/route/lane_choice.h"
#include "front/route/fair_share.h"
#include "front/route/reads.h"
#include "front/session/wait_coverage.h"
#include "front/client/remains.h"
#include "front/client/timing.h"
#include "limit/command/keys.h"
#include "resp/plain.h"
#include "upstream/lane/shared.h"

/* True if nothing in the client's state affects a plain command. */
static inline bool is_unburdened(const struct client *client)
{
    if (client->unbound != NULL)
        return false; /* the command may bind the client */
    const struct front *front = client->front;
    const struct extra *extra = client_extra(client);
    unsigned burdens =
        (unsigned)client_has_own_lane(client) | !transaction_is_none(&client->transaction) |
        reply_mode_is_deaf(&client->reply_mode) | client->was_refused | client->is_keyed |
        subject_is_overflow(client->subject) | client_is_operator(client);
    /*
     * The size of a new client's reads is unknown. The client takes the full path while its first
     * read is unanswered. While lanes are wary of huge replies, the first read takes the full path,
     * too.
     */
    bool is_stranger =
        client->reader != READER_KNOWN &&
        (client->reader != READER_NEW || shared_is_wary(&front_default_row(front)->lanes));
    return burdens == 0 && extra->n_asked == 0 && extra->n_subscribed == 0 &&
           extra->heavy_until_ns == 0 && !is_stranger && !front->settings->lanes_private;
}

/* Returns the lane for the client's commands. NULL: the full path must choose a lane. */
static inline struct lane *fast_path_find_lane(const struct client *client)
{
    const struct lane_user *lane_user = &client->lane_user;
    struct lane *lane = client->shared.lane;
    if (!lease_holds(&client->shared) || !lane_is_ready(lane) ||
        node_is_paused(lane_node(lane), client->front->loop->now_ns) ||
        remains_must_wait(client, lane_node(lane)))
        return NULL;
    bool is_there = lane_user->in_flight > 0 ? lane_user->lane == lane : !shared_is_sluggish(lane);
    return is_there ? lane : NULL;
}

/* bytes that may be read from the beginning of a name */
#define NAME_ROOM ((ptrdiff_t)sizeof(uint64_t))

/* True if the command needs none of the full path's checks. */
static inline bool is_plain_command(const struct command *command)
{
    return command->id != 0 && command->flow == FLOW_ONE && command->effect == EFFECT_NONE &&
           command->is_shareable && !command->blocks && !command->pins && !command->is_urgent &&
           !command->has_subcommands && !command->in_container;
}

/*
 * Returns the command of that name. NAME_ROOM bytes from the name's beginning must be readable.
 * NULL: the command is not plain, or its name is too long.
 */
static inline const struct command *fast_path_find_command(struct front *front, struct slice name)
{
    struct recent *recent = &front->recent;
    uint64_t word;
    if (name.len == 0 || name.len > sizeof word || name.at[name.len - 1] == '\0')
        return NULL; /* "GET\0" must not be taken for "GET" */
    memcpy(&word, name.at, sizeof word);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    if (name.len < sizeof word)
        word &= (UINT64_C(1) << (8 * name.len)) - 1;
    unsigned slot = (unsigned)((word * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
    if (recent->slots[slot].word == word)
        return recent->slots[slot].command;
    const struct command *command = command_find(front->commands, name, slice_of("", 0));
    recent->slots[slot].word = word;
    recent->slots[slot].command = is_plain_command(command) ? command : NULL;
    return recent->slots[slot].command;
}

/* ---- the gate ---- */

/*
 * As charge_ask, for n requests one after the other. The client's policy must limit only the number
 * of commands. Returns how many requests pass. Each other request is refused with *verdict.
 */
static inline uint32_t pass_gate(struct client *client, const struct command *command, uint32_t n,
                                 struct verdict *verdict)
{
    struct front *front = client->front;
    client->n_commands += n;
    peak_rates_note(&front->peak_rates, command, n);
    if (client->bound == NULL)
        return n;
    uint32_t passed = gate_ask_plainly(client->bound, client->subject, command, n,
                                       front->loop->now_ns, front->limit_counters, verdict);
    if (passed < n)
        charge_count_refused(client, verdict->limit, n - passed);
    return passed;
}

/*
 * As charge_ask_refusal, for n requests. True: all of them are refused. False: no request is
 * refused or counted.
 */
static inline bool refuse_at_gate(struct client *client, const struct command *command, uint32_t n,
                                  struct verdict *verdict)
{
    struct front *front = client->front;
    if (client->bound == NULL || (command->flags & CMD_CONTROL) != 0 ||
        !gate_refuse_plainly(client->bound, client->subject, command, n, front->loop->now_ns,
                             front->limit_counters, verdict))
        return false;
    client->n_commands += n;
    charge_count_refused(client, verdict->limit, n);
    peak_rates_note(&front->peak_rates, command, n);
    return true;
}

/* Answers the last n requests of this command, which the gate has refused. */
static enum route fast_path_refuse(struct client *client, const struct command *command,
                                   uint32_t argc, uint32_t n, const struct verdict *verdict)
{
    front_count_many(client->front, command, RESULT_THROTTLED, n);
    timing_local(client, timing_tag(client, command, argc), n);
    return answer_over(client, verdict, n);
}

/*
 * A run of neighbouring requests of one command with the same number of arguments. The requests
 * come at the same time and have the same limits, so the gate decides all of them at once.
 */
struct request_run {
    const char *at; /* beginning of the first request */
    const char *end;
    const struct command *command;
    uint32_t argc;
    uint32_t n; /* 0: the next request must take the full path, or is not here */
};

/*
 * Most bytes of a run with more than one request (chosen). Checks that are made once for a run, for
 * example for SHARED_BYTES_MAX, are repeated after RUN_BYTES.
 */
#define RUN_BYTES 4096

static inline bool fast_path_fits(enum reads_kind kind, const struct command *command)
{
    return kind == READS_ANY || kind == (command->reads_keys ? READS_READS : READS_OTHERS);
}

/*
 * Returns the next run of requests that may be sent on this lane now. `lane` is NULL while no lane
 * is known.
 */
static inline struct request_run find_run(const struct client *client, const struct lane *lane,
                                          const struct pace *pace, enum reads_kind kind,
                                          const struct request_limits *limits, const char *at,
                                          const char *end)
{
    struct slice name;
    struct request_run run = {.at = at, .n = 0};
    struct front *front = client->front;
    if ((lane != NULL && lane_is_congested(lane)) ||
        lane_sent_bytes(&client->lane_user) > SHARED_BYTES_MAX || client->reader == READER_ASKS)
        return run;
    const char *next = plain_request(at, end, limits, &name, &run.argc);
    if (next == NULL || next - at > LARGE_REQUEST || end - name.at < NAME_ROOM)
        return run;
    run.command = fast_path_find_command(front, name);
    if (run.command == NULL || !fast_path_fits(kind, run.command))
        return run;
    const uint32_t most = pace_most(pace, command_cost_ns(run.command));
    if (most == 0)
        return run;
    bool goes_alone = lane != NULL && lane_choice_asks_size(client, run.command);
    size_t head = plain_head(at, name);
    do {
        run.end = next;
        run.n++;
        next = goes_alone ? NULL : plain_request_like(run.end, end, limits, at, head, run.argc);
    } while (next != NULL && run.n < most && next - at <= RUN_BYTES);
    return run;
}

/* Returns the end of the first n requests of the run. n is less than run->n. */
static const char *fast_path_end_of(const struct request_run *run,
                                    const struct request_limits *limits, uint32_t n)
{
    struct slice name;
    uint32_t argc;
    const char *at = run->at;
    for (; n > 0; n--)
        at = plain_request(at, run->end, limits, &name, &argc);
    return at;
}

/*
 * Records the first n requests, which end at `end` and passed the gate. False: out of memory, and
 * the client is closed.
 */
static inline bool fast_path_note(struct client *client, struct lane *lane,
                                  const struct request_run *run, uint32_t n, const char *end)
{
    struct lane_user *lane_user = &client->lane_user;
    uint32_t bytes = (uint32_t)(end - run->at);
    lane_choice_note_read(client, run->command);
    lane_count_sent(lane_user, SHARED_CALLS_FEW, bytes);
    if ((lane->keeps && !client_keep(client, run->command, slice_of(run->at, bytes), n)) ||
        !lane_call(lane, lane_user, timing_tag(client, run->command, run->argc), n)) {
        client_close_starved(client);
        return false;
    }
    client->n_bytes += bytes;
    if (run->command->is_pausable)
        coverage_note_elsewhere(client);
    front_count_many(client->front, run->command, RESULT_FORWARDED, n);
    return true;
}

/*
 * Refuses requests while the client has no lane, since a refusal needs no lane. A request that
 * would pass takes the full path, which finds a lane before it charges.
 */
static enum route refuse_without_lane(struct client *client, const struct request_limits *limits,
                                      struct slice bytes, size_t *used, struct pace *pace)
{
    const char *at = bytes.at;
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN) {
        struct verdict verdict;
        const struct request_run run =
            find_run(client, NULL, pace, READS_ANY, limits, at, bytes.at + bytes.len);
        if (run.n == 0 || !refuse_at_gate(client, run.command, run.n, &verdict))
            break;
        at = run.end;
        pace->left -= run.n;
        result = fast_path_refuse(client, run.command, run.argc, run.n, &verdict);
    }
    *used = (size_t)(at - bytes.at);
    return result;
}

/* Sends all passing requests to the lane, with refusals in between. */
static enum route send_along(struct client *client, struct lane *lane,
                             const struct request_limits *limits, struct slice bytes, size_t *used,
                             struct pace *pace)
{
    const char *from = bytes.at; /* beginning of the requests that passed and are not sent yet */
    const char *at = bytes.at;   /* end of these requests */
    uint32_t n = 0;
    uint64_t work_ns = 0;
    const enum reads_kind kind =
        client_extra(client)->read_side == NULL ? READS_ANY : reads_kind_now(client);
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN) {
        struct verdict verdict;
        const struct request_run run =
            find_run(client, lane, pace, kind, limits, at, bytes.at + bytes.len);
        if (run.n == 0)
            break;
        uint32_t n_passed = pass_gate(client, run.command, run.n, &verdict);
        const char *passed = n_passed == run.n ? run.end : fast_path_end_of(&run, limits, n_passed);
        if (n_passed > 0 && !fast_path_note(client, lane, &run, n_passed, passed)) {
            result = ROUTE_STOP;
            break; /* nothing is sent, because no call is recorded for the replies */
        }
        work_ns += n_passed * (uint64_t)command_cost_ns(run.command);
        at = passed;
        n += n_passed;
        pace_take(pace, run.n, command_cost_ns(run.command));
        if (n_passed < run.n) {
            lane_gather(lane, &client->lane_user, from, (size_t)(at - from));
            from = at = run.end;
            result = fast_path_refuse(client, run.command, run.argc, run.n - n_passed, &verdict);
        }
    }
    lane_gather(lane, &client->lane_user, from, (size_t)(at - from));
    fair_share_note_sent(client, n, work_ns + fair_share_bytes_ns((uint64_t)(at - bytes.at)));
    *used = (size_t)(at - bytes.at);
    return result;
}

/* ---- on a cluster ---- */

#define BATCH_MOST 64 /* requests charged at a time (chosen) */
#define ROWS_MOST 64  /* bits in places_seen; requests to later rows take the full path */

/*
 * A run of neighbouring requests of one command with the same number of arguments, each for a place
 * that is ready.
 */
struct slot_run {
    const struct command *command;
    uint32_t argc;
    uint32_t n; /* 0: the next request must take the full path, or is not here */
    const char *ends[BATCH_MOST];
    uint8_t rows[BATCH_MOST];
};

/*
 * The places that have been checked, and the checked places that are ready. One bit for each row.
 */
struct places_seen {
    uint64_t looked, ready;
};

/* True if requests can be sent to the place without any preparation. */
static bool is_ready(const struct client *client, struct place *place)
{
    struct lane_user *lane_user = &place->lane_user;
    const struct lane *lane = place->shared.lane;
    if (!lease_holds(&place->shared) || !lane_is_ready(lane) || lane_is_congested(lane) ||
        place->was_refused || place->n_hops > 0 ||
        node_is_paused(lane_node(lane), client->front->loop->now_ns) ||
        remains_must_wait(client, lane_node(lane)) || lane_sent_bytes(lane_user) > SHARED_BYTES_MAX)
        return false;
    if (lane_user->in_flight > 0 ? lane_user->lane != lane : shared_is_sluggish(lane))
        return false;
    lane_user->arrived_ns = client->lane_user.arrived_ns;
    lane_user->waited_us = client->lane_user.waited_us;
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

/* True if the first argument is the command's only key. */
static inline bool has_one_key(const struct command *command, uint32_t argc)
{
    int32_t last = command->last_key >= 0 ? command->last_key : (int32_t)argc + command->last_key;
    return command->keys == KEYS_POSITION && command->first_key == 1 && last >= 1 &&
           last <= command->key_step;
}

/* Finds the next run of similar requests that can go now. */
static inline void find_slot_run(const struct client *client, struct slot_run *run,
                                 struct places_seen *seen, const struct pace *pace,
                                 const struct request_limits *limits, const char *at,
                                 const char *end)
{
    struct slice name;
    const struct slot_map *map = client->front->nodes.topology->slots;
    const char *const begin = at;
    const char *next = plain_request(at, end, limits, &name, &run->argc);
    run->n = 0;
    if (next == NULL || next - at > LARGE_REQUEST || end - name.at < NAME_ROOM)
        return;
    run->command = fast_path_find_command(client->front, name);
    if (run->command == NULL || !has_one_key(run->command, run->argc))
        return;
    bool goes_alone = lane_choice_asks_size(client, run->command);
    const struct key_filter *several = &client->extra->spread->several;
    bool is_read = keep_kind(run->command) == KEPT_READ;
    size_t head = plain_head(at, name);
    uint32_t most = pace_most(pace, command_cost_ns(run->command));
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
        run->rows[run->n] = (uint8_t)row;
        run->ends[run->n++] = next;
        at = next;
        next = goes_alone ? NULL : plain_request_like(at, end, limits, begin, head, run->argc);
    } while (next != NULL && run->n < most && next - begin <= RUN_BYTES);
    if (slot_map_version(map) != client->extra->spread->version)
        run->n = 0; /* slot_map.h tells why the version is read after the rows */
}

/* Sends n neighbouring requests of one place. False: out of memory, and the client is closed. */
static inline bool send_some(struct client *client, struct place *place, const struct slot_run *run,
                             const char *at, uint32_t n, const char *end)
{
    struct lane_user *lane_user = &place->lane_user;
    struct lane *lane = place->shared.lane;
    uint32_t bytes = (uint32_t)(end - at);
    if (run->command->is_pausable)
        place->wrote_at = coverage_time(client);
    lane_count_sent(lane_user, SHARED_CALLS_FEW, bytes);
    if (!spread_expect(client->extra->spread, &client->extra->replies, place, n) ||
        unanswered_add_more(&place->unanswered, &client->front->loop->pool, keep_kind(run->command),
                            slice_of(at, bytes), n) == NULL ||
        !lane_call(lane, lane_user, timing_tag(client, run->command, run->argc), n)) {
        client_close_starved(client);
        return false;
    }
    lane_gather(lane, lane_user, at, bytes);
    return true;
}

/* Sends the first n requests from `at` on, which passed the gate. */
static bool fast_path_send_all(struct client *client, const struct slot_run *run, const char *at,
                               uint32_t n)
{
    const char *const begin = at;
    struct place *const *places = client->extra->spread->places;
    lane_choice_note_read(client, run->command);
    for (uint32_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && run->rows[to] == run->rows[i];)
            to++;
        if (!send_some(client, places[run->rows[i]], run, at, to - i, run->ends[to - 1]))
            return false;
        at = run->ends[to - 1];
    }
    client->n_bytes += (uint32_t)(at - begin);
    if (run->command->is_pausable)
        coverage_note_elsewhere(client);
    front_count_many(client->front, run->command, RESULT_FORWARDED, n);
    return true;
}

/* True if no call in flight affects where the next request goes. */
static bool fast_path_is_settled(const struct client *client)
{
    const struct spread *spread = client_extra(client)->spread;
    return spread != NULL && !spread->is_stale && spread->n_held == 0 &&
           client->lane_user.in_flight == 0;
}

/*
 * On a cluster: sends plain commands of one key to the places of their slots. Each place must have
 * a ready lane. No slot may have changed its node since the calls in flight were sent. No hop may
 * be waiting.
 */
static enum route run_on_cluster(struct client *client, const struct request_limits *limits,
                                 struct slice bytes, size_t *used, struct pace *pace)
{
    const char *at = bytes.at;
    struct places_seen seen = {0};
    struct slot_run run;
    uint32_t n_sent = 0;
    uint64_t work_ns = 0;
    enum route result = ROUTE_TAKEN;
    while (result == ROUTE_TAKEN && fast_path_is_settled(client) && client->reader != READER_ASKS) {
        struct verdict verdict;
        find_slot_run(client, &run, &seen, pace, limits, at, bytes.at + bytes.len);
        if (run.n == 0)
            break;
        uint32_t n = pass_gate(client, run.command, run.n, &verdict);
        if (n > 0 && !fast_path_send_all(client, &run, at, n)) {
            result = ROUTE_STOP;
            break;
        }
        n_sent += n;
        work_ns += n * (uint64_t)command_cost_ns(run.command);
        at = run.ends[run.n - 1];
        pace_take(pace, run.n, command_cost_ns(run.command));
        if (n < run.n)
            result = fast_path_refuse(client, run.command, run.argc, run.n - n, &verdict);
    }
    fair_share_note_sent(client, n_sent, work_ns + fair_share_bytes_ns((uint64_t)(at - bytes.at)));
    *used = (size_t)(at - bytes.at);
    return result;
}

/* ---- choosing the path ---- */

enum route fast_path_run(struct client *client, const struct request_limits *limits,
                         struct slice bytes, size_t *used, struct pace *pace)
{
    *used = 0;
    if (!is_unburdened(client) || (client->bound != NULL && !client->bound->is_plain))
        return ROUTE_TAKEN;
    if (client_is_on_cluster(client) && client_extra(client)->read_side != NULL)
        /* each read may go to one of several nodes: front/cluster/shard_reads.h */
        return ROUTE_TAKEN;
    charge_begin(client);
    if (client_is_on_cluster(client))
        return run_on_cluster(client, limits, bytes, used, pace);
    struct lane *lane = fast_path_find_lane(client);
    if (lane != NULL)
        return send_along(client, lane, limits, bytes, used, pace);
    if (!lease_holds(&client->shared))
        return refuse_without_lane(client, limits, bytes, used, pace);
    return ROUTE_TAKEN;
}
