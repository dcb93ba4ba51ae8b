#include "admin/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* ---- the snapshot ---- */

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return NULL;
    atomic_init(&snapshot->holders, 1);
    snapshot->block_id = TOP_NO_LIMIT;
    return snapshot;
}

struct snapshot *snapshot_get(struct snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->holders, 1, memory_order_relaxed);
    return snapshot;
}

void snapshot_put(struct snapshot *snapshot)
{
    if (snapshot == NULL ||
        atomic_fetch_sub_explicit(&snapshot->holders, 1, memory_order_acq_rel) > 1)
        return;
    history_free(snapshot->history);
    free(snapshot->nodes);
    free(snapshot->limits);
    free(snapshot->owns);
    free(snapshot->named);
    free(snapshot);
}

const char *node_use_name(enum node_use use)
{
    static const char *const names[] = {[USED_FOR_NOTHING] = "nothing",
                                        [USED_FOR_READS] = "reads",
                                        [USED_FOR_SLOTS] = "slots",
                                        [USED_FOR_ALL] = "all"};
    return names[use];
}

const struct snapshot_node *snapshot_default_node(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        if (snapshot->nodes[i].use >= USED_FOR_SLOTS)
            return &snapshot->nodes[i];
    return NULL;
}

const char *node_state_name(enum node_state state)
{
    static const char *const names[] = {[NODE_UP] = "up",
                                        [NODE_BUSY] = "busy",
                                        [NODE_PAUSED] = "paused",
                                        [NODE_SILENT] = "silent",
                                        [NODE_AWAY] = "away"};
    return names[state];
}

uint64_t snapshot_clients(const struct snapshot *snapshot)
{
    uint64_t open = 0;
    for (size_t l = 0; l < snapshot->n_listeners; l++)
        open += snapshot->listeners[l].is_admin ? 0 : snapshot->listeners[l].open;
    return open;
}

/* ---- the history ---- */

#define NS_IN_S 1e9
#define MEDIAN 0.5
#define SLOW 0.99
#define NEAR 0.8 /* share of a limit that is "near" (chosen) */
/* most time by which a point may be early, because timers are not exact */
#define EARLY_NS (NS_PER_S / 4)
#define STEP_NS (HISTORY_STEP_S * NS_PER_S - EARLY_NS)

struct history *history_new(void)
{
    return mem_zalloc(1, sizeof(struct history));
}

void history_free(struct history *history)
{
    if (history == NULL)
        return;
    free(history->tracks);
    free(history);
}

/* Returns a copy with its own tracks, NULL if out of memory. */
static struct history *copy(const struct history *history)
{
    struct history *copy = malloc(sizeof *copy);
    struct track *tracks = malloc((history->n_limits + 1) * sizeof *tracks);
    if (copy == NULL || tracks == NULL) {
        free(copy);
        free(tracks);
        return NULL;
    }
    *copy = *history;
    copy->tracks = tracks;
    if (history->n_limits > 0)
        memcpy(tracks, history->tracks, history->n_limits * sizeof *tracks);
    return copy;
}

static void history_push(float *points, double value)
{
    memmove(points, points + 1, (HISTORY_POINTS - 1) * sizeof *points);
    points[HISTORY_POINTS - 1] = (float)value;
}

/*
 * Returns the growth of a counter. Counters only grow. A difference of totals may still be
 * negative, because the parts of a total are read one by one.
 */
static double history_grown(double now, double before)
{
    return now > before ? now - before : 0;
}

/* ---- the history: the process ---- */

static void push_quantile(float *points, const struct histo *histo, double q)
{
    history_push(points, (double)histo_quantile_ns(histo, q) / NS_IN_S);
}

/* Returns what was added since *before, and sets *before to *now. */
static struct histo since(struct histo *before, const struct histo *now)
{
    struct histo recent = *now;
    histo_subtract(&recent, before);
    *before = *now;
    return recent;
}

/* Returns the latency of commands since the last point, without delays by limits. */
static struct histo latency(struct times *before, const struct times *now)
{
    struct histo recent = since(&before->request, &now->request);
    struct histo held = since(&before->held, &now->held);
    struct histo released = since(&before->released, &now->released);
    histo_take_out(&recent, &held);
    counts_add(&recent, &released, sizeof recent);
    return recent;
}

/* Pushes both quantiles; the series of the 99th percentile follows the series of the median. */
static void push_both(struct history *history, enum series median, const struct histo *recent)
{
    push_quantile(history->points[median], recent, MEDIAN);
    push_quantile(history->points[median + 1], recent, SLOW);
}

static void push_times(struct history *history, const struct snapshot *s)
{
    struct times *before = &history->times;
    const struct times *now = &s->counts.times;
    struct histo requests = latency(before, now);
    struct histo upstream = since(&before->upstream, &now->upstream);
    struct histo delays = since(&before->delay, &now->delay);
    struct histo overhead = since(&before->overhead, &now->overhead);
    struct histo waits = since(&before->share, &now->share);
    struct histo iterations = since(&history->iterations, &s->iterations);
    push_both(history, SERIES_LATENCY_P50, &requests);
    push_both(history, SERIES_UPSTREAM_P50, &upstream);
    push_both(history, SERIES_DELAY_P50, &delays);
    push_both(history, SERIES_OVERHEAD_P50, &overhead);
    push_both(history, SERIES_WAIT_P50, &waits);
    push_quantile(history->points[SERIES_ITERATION_P99], &iterations, SLOW);
}

static void add_up(const struct snapshot *s, double *totals)
{
    for (int kind = 0; kind < COMMAND_KINDS; kind++) {
        const _Atomic uint64_t *results = s->counts.commands[kind];
        for (int r = 0; r < RESULT_COUNT; r++)
            totals[SERIES_COMMANDS] += (double)count_read(&results[r]);
        totals[SERIES_REFUSED] += (double)count_read(&results[RESULT_THROTTLED]);
        totals[SERIES_DELAYED] += (double)count_read(&results[RESULT_DELAYED]);
        totals[SERIES_SHADOWED] += (double)count_read(&results[RESULT_SHADOW]);
        totals[SERIES_ERRORS] += (double)count_read(&results[RESULT_ERROR]);
    }
    totals[SERIES_BLOCKED] = (double)s->blocked_commands;
    totals[SERIES_REDIS_ERRORS] = (double)count_read(&s->lanes.error_replies);
    totals[SERIES_BYTES_IN] = (double)s->client_read;
    totals[SERIES_BYTES_OUT] = (double)s->client_written;
}

/* ---- the history: limits ---- */

static struct track *history_find(const struct history *history, uint16_t id)
{
    for (size_t i = 0; i < history->n_limits; i++)
        if (history->tracks[i].id == id)
            return &history->tracks[i];
    return NULL;
}

static struct decided decided(const struct snapshot_limit *limit)
{
    return (struct decided){limit->admitted, limit->delayed, limit->refused, limit->shadowed};
}

/*
 * Brings the tracks into the order of the snapshot's limits, which a reload may change. A new track
 * starts with the current totals. False if out of memory.
 */
static bool match(struct history *history, const struct snapshot *s)
{
    size_t n = s->n_limits < HISTORY_LIMITS ? s->n_limits : HISTORY_LIMITS;
    struct track *tracks = calloc(n + 1, sizeof *tracks);
    if (tracks == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct snapshot_limit *limit = &s->limits[i];
        const struct track *known = history_find(history, limit->id);
        tracks[i] = known != NULL ? *known
                                  : (struct track){.id = limit->id,
                                                   .seen = decided(limit),
                                                   .at_point = decided(limit)};
    }
    free(history->tracks);
    history->tracks = tracks;
    history->n_limits = n;
    return true;
}

static double history_over(const struct decided *decided)
{
    return (double)(decided->delayed + decided->refused + decided->shadowed);
}

static void push_limit(struct track *track, const struct snapshot_limit *limit, double took_s)
{
    struct decided now = decided(limit);
    history_push(track->allowed,
                 history_grown((double)now.admitted, (double)track->at_point.admitted) / took_s);
    history_push(track->over,
                 history_grown(history_over(&now), history_over(&track->at_point)) / took_s);
    track->at_point = now;
}

/*
 * Sets the limit's usage from the current rate. Applies only to limits with one rate and one
 * funnel: per policy, or with a single subject.
 */
static void set_use(const struct snapshot *s, struct snapshot_limit *limit)
{
    if (own_lines_has(s, limit))
        return;
    bool is_one = strcmp(limit->scope, "policy") == 0 ||
                  (limit->subjects == 1 && strcmp(limit->scope, "subject") == 0);
    double use = is_one && snapshot_limit_is_fast(limit) ? limit->allowed_per_s / limit->per_s : 0;
    if (use > limit->used)
        limit->used = use < 1 ? use : 1;
}

static void set_state(struct track *track, struct snapshot_limit *limit, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + HISTORY_HOLD_S * NS_PER_S;
    if (limit->used > NEAR)
        track->until_ns[LIMIT_NEAR] = until_ns;
    if (limit->shadowed > track->seen.shadowed)
        track->until_ns[LIMIT_SHADOWING] = until_ns;
    if (limit->delayed > track->seen.delayed) /* includes delays in shadow mode */
        track->until_ns[limit->is_shadow ? LIMIT_SHADOWING : LIMIT_DELAYING] = until_ns;
    if (limit->refused > track->seen.refused)
        track->until_ns[LIMIT_REFUSING] = until_ns;
    limit->state = LIMIT_CALM;
    for (int state = LIMIT_NEAR; state < LIMIT_STATES; state++)
        if (track->until_ns[state] > now_ns)
            limit->state = (enum limit_state)state;
}

/* ---- the history: points ---- */

static void take_point(struct history *history, const struct snapshot *s)
{
    double totals[SERIES_RATES] = {0};
    double took_s = (double)(s->taken_ns - history->last_ns) / NS_IN_S;
    add_up(s, totals);
    for (int i = 0; i < SERIES_RATES; i++)
        history_push(history->points[i], history_grown(totals[i], history->totals[i]) / took_s);
    memcpy(history->totals, totals, sizeof totals);
    history_push(history->points[SERIES_CONNECTIONS], (double)snapshot_clients(s));
    history_push(history->points[SERIES_IN_FLIGHT], (double)count_read(&s->lanes.in_flight));
    push_times(history, s);
    for (size_t i = 0; i < history->n_limits; i++)
        push_limit(&history->tracks[i], &s->limits[i], took_s);
    history->last++;
    history->n += history->n < HISTORY_POINTS;
}

static void note_limits(struct history *history, struct snapshot *s)
{
    for (size_t i = 0; i < history->n_limits; i++) {
        struct track *track = &history->tracks[i];
        s->limits[i].allowed_per_s = (double)track->allowed[HISTORY_POINTS - 1];
        s->limits[i].over_per_s = (double)track->over[HISTORY_POINTS - 1];
        set_use(s, &s->limits[i]);
        set_state(track, &s->limits[i], s->taken_ns);
        track->seen = decided(&s->limits[i]);
    }
}

static void note_blocks(struct history *history, struct snapshot *s)
{
    if (s->blocked_commands > history->blocked)
        history->blocked_until_ns = s->taken_ns + HISTORY_HOLD_S * NS_PER_S;
    history->blocked = s->blocked_commands;
    s->is_block_active = history->blocked_until_ns > s->taken_ns;
}

static void history_begin(struct history *history, const struct snapshot *s)
{
    history->blocked = s->blocked_commands;
    add_up(s, history->totals);
    history->times = s->counts.times;
    history->iterations = s->iterations;
}

bool history_note(struct history *history, struct snapshot *snapshot)
{
    bool is_first = history->last_ns == 0;
    bool is_point = !is_first && snapshot->taken_ns >= history->last_ns + STEP_NS;
    if (!match(history, snapshot))
        return false;
    if (is_point)
        take_point(history, snapshot);
    if (is_first)
        history_begin(history, snapshot);
    if (is_point || is_first)
        history->last_ns = snapshot->taken_ns;
    note_limits(history, snapshot);
    note_blocks(history, snapshot);
    snapshot->history = copy(history);
    return snapshot->history != NULL;
}

double history_now(const struct history *history, enum series series)
{
    return (double)history->points[series][HISTORY_POINTS - 1];
}

const char *series_name(enum series series)
{
    static const char *const names[SERIES_COUNT] = {
        [SERIES_COMMANDS] = "commands_per_second",
        [SERIES_REFUSED] = "refused_per_second",
        [SERIES_BLOCKED] = "blocked_per_second",
        [SERIES_DELAYED] = "delayed_per_second",
        [SERIES_SHADOWED] = "shadowed_per_second",
        [SERIES_ERRORS] = "errors_per_second",
        [SERIES_REDIS_ERRORS] = "redis_errors_per_second",
        [SERIES_BYTES_IN] = "bytes_in_per_second",
        [SERIES_BYTES_OUT] = "bytes_out_per_second",
        [SERIES_CONNECTIONS] = "connections",
        [SERIES_IN_FLIGHT] = "in_flight",
        [SERIES_LATENCY_P50] = "latency_p50_seconds",
        [SERIES_LATENCY_P99] = "latency_p99_seconds",
        [SERIES_UPSTREAM_P50] = "upstream_p50_seconds",
        [SERIES_UPSTREAM_P99] = "upstream_p99_seconds",
        [SERIES_DELAY_P50] = "delay_p50_seconds",
        [SERIES_DELAY_P99] = "delay_p99_seconds",
        [SERIES_OVERHEAD_P50] = "overhead_p50_seconds",
        [SERIES_OVERHEAD_P99] = "overhead_p99_seconds",
        [SERIES_WAIT_P50] = "share_wait_p50_seconds",
        [SERIES_WAIT_P99] = "share_wait_p99_seconds",
        [SERIES_ITERATION_P99] = "loop_turn_p99_seconds",
    };
    return names[series];
}

const char *limit_state_name(enum limit_state state)
{
    static const char *const names[LIMIT_STATES] = {
        [LIMIT_CALM] = "ok",
        [LIMIT_NEAR] = "near",
        [LIMIT_SHADOWING] = "shadowing",
        [LIMIT_DELAYING] = "delaying",
        [LIMIT_REFUSING] = "refusing",
    };
    return names[state];
}

/* ---- lines of single subjects ---- */

#define NAMED_MOST 3

bool own_lines_has(const struct snapshot *s, const struct snapshot_limit *limit)
{
    for (size_t i = 0; i < s->n_owns; i++)
        if (s->owns[i].id == limit->id)
            return true;
    return false;
}

void own_lines_name(struct text *out, const struct snapshot *s, const struct snapshot_limit *limit)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_owns; i++) {
        const struct snapshot_own *own = &s->owns[i];
        if (own->id != limit->id || n++ >= NAMED_MOST)
            continue;
        text_print(out, "%s%s for %s", n > 1 ? ", " : "", own->amount, own->subject);
    }
    if (n > NAMED_MOST)
        text_print(out, " and %zu more", n - NAMED_MOST);
}

uint64_t own_lines_refused(const struct snapshot *s, const struct snapshot_own *own)
{
    const struct snapshot_top *top = &s->tops[TOP_REFUSED];
    for (size_t i = 0; i < top->n; i++)
        if (top->rows[i].refused_by == own->id &&
            slice_eq(slice_of(top->rows[i].subject, top->rows[i].subject_len),
                     slice_str(own->subject)))
            return top->rows[i].per_s;
    return 0;
}
