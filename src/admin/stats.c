#include "admin/stats.h"

#include "admin/findings.h"
#include "admin/holders.h"
#include "admin/snapshot.h"
#include "admin/json.h"
#include "admin/metrics.h"
#include "base/clock.h"
#include "upstream/lane/lack.h"

static void write_process(struct text *out, const struct snapshot *s)
{
    json_string(out, "name", s->name);
    json_string(out, "version", s->version);
    json_number(out, "time_ms", s->unix_ms);
    json_real(out, "uptime_seconds", (double)(s->unix_ms - s->started_unix_ms) / 1000.0);
    json_number(out, "pid", (uint64_t)s->pid);
    json_string(out, "config_file", s->config_path != NULL ? s->config_path : "");
    json_string(out, "lanes", s->is_private ? "private" : "shared");
    json_string(out, "mode", s->is_shadow ? "shadow" : "enforce");
    json_string(out, "not_ready_because", s->not_ready);
    metrics_json(out, s, OF_WEIR, 0);
    json_open_object(out, "reloads");
    metrics_json(out, s, OF_RELOADS, 0);
    json_number(out, "last_success_ms", s->reloaded_unix_ms);
    json_string(out, "last_error", s->reload_error);
    json_close_object(out);
}

/* Writes the node at index `i`. Index n_nodes means all nodes together. */
static void write_node(struct text *out, const struct snapshot *s, size_t i, const char *address,
                       const struct snapshot_health *health)
{
    json_string(out, "address", address);
    json_string(out, "state", node_state_name(health->state));
    json_real(out, "silent_seconds", (double)health->silence_ns / (double)NS_PER_S);
    metrics_json(out, s, OF_UPSTREAM, i);
}

/* Writes the lacks of a node (upstream/lane/lack.h). */
static void write_lacks(struct text *out, uint32_t lacks, bool is_cluster)
{
    json_open_list(out, "lacks");
    for (int lack = 0; lack < LACK_COUNT; lack++) {
        if ((lacks >> lack & 1) == 0)
            continue;
        json_open_row(out);
        json_string(out, "what", lack_name((enum lack)lack));
        json_string(out, "remedy", lack_remedy((enum lack)lack, is_cluster));
        json_close_object(out);
    }
    json_close_list(out);
}

static void write_addresses(struct text *out, const struct snapshot_node *node)
{
    json_string(out, "in_use", node->in_use);
    json_string(out, "role", node->role);
    json_open_list(out, "addresses");
    for (unsigned i = 0; i < node->n_tries; i++) {
        json_open_row(out);
        json_string(out, "address", node->tries[i].address);
        json_string(out, "why", node->tries[i].why);
        json_close_object(out);
    }
    json_close_list(out);
}

static void write_place(struct text *out, const struct snapshot_node *node)
{
    json_string(out, "use", node_use_name(node->use));
    json_number(out, "epoch", node->epoch);
    if (node->use == USED_FOR_SLOTS) {
        json_open_object(out, "redirects");
        for (int kind = 0; kind < REDIRECT_COUNT; kind++)
            json_number(out, lane_redirect_name((enum lane_redirect)kind),
                        count_read(&node->lanes.redirects[kind]));
        json_close_object(out);
    }
    if (node->lag_ms != SNAPSHOT_NO_LAG)
        json_number(out, "behind_bytes", node->behind_bytes);
    json_number(out, "changed_ms", node->changed_unix_ms);
}

static void write_upstream(struct text *out, const struct snapshot *s)
{
    json_open_object(out, "upstream");
    write_node(out, s, s->n_nodes, s->upstream, &s->health);
    json_flag(out, "replicated", s->is_replicated);
    json_flag(out, "cluster", s->is_cluster);
    if (s->is_cluster) {
        json_number(out, "slots_served", s->slots_served);
        json_number(out, "slots_up", s->slots_up);
    }
    json_open_list(out, "nodes");
    for (size_t i = 0; i < s->n_nodes; i++) {
        json_open_row(out);
        write_node(out, s, i, s->nodes[i].address, &s->nodes[i].health);
        metrics_json(out, s, OF_NODE, i);
        json_string(out, "why", s->nodes[i].why);
        write_addresses(out, &s->nodes[i]);
        write_place(out, &s->nodes[i]);
        write_lacks(out, s->nodes[i].lacks, s->is_cluster);
        json_close_object(out);
    }
    json_close_list(out);
    json_number(out, "bytes_read", s->upstream_read);
    json_number(out, "bytes_written", s->upstream_written);
    json_close_object(out);
}

static void write_clients(struct text *out, const struct snapshot *s)
{
    json_open_object(out, "clients");
    json_number(out, "connected", snapshot_clients(s));
    metrics_json(out, s, OF_CLIENTS, 0);
    json_number(out, "bytes_read", s->client_read);
    json_number(out, "bytes_written", s->client_written);
    json_open_list(out, "listeners");
    for (size_t l = 0; l < s->n_listeners; l++) {
        json_open_row(out);
        json_string(out, "listener", s->listeners[l].name);
        metrics_json(out, s, OF_LISTENER, l);
        json_close_object(out);
    }
    json_close_list(out);
    json_close_object(out);
}

static void write_commands(struct text *out, const struct snapshot *s)
{
    json_open_object(out, "commands");
    for (size_t kind = 0; kind < COMMAND_KINDS; kind++) {
        json_open_object(out, command_kind_name((enum command_kind)kind));
        metrics_json(out, s, OF_CLASS, kind);
        json_close_object(out);
    }
    json_close_object(out);
}

/* Writes the points with a number above `after`. */
static void write_points(struct text *out, const char *key, const float *points,
                         const struct history *history, uint64_t after)
{
    uint64_t newer = history->last > after ? history->last - after : 0;
    size_t n = newer < history->n ? (size_t)newer : history->n;
    json_reals(out, key, points + HISTORY_POINTS - n, n);
}

/* Names of version 0.2, kept beside the current names. */
static const struct {
    const char *name;
    enum series series;
} old_names[] = {
    {"turn_wait_p50_seconds", SERIES_WAIT_P50},
    {"turn_wait_p99_seconds", SERIES_WAIT_P99},
};

static void write_history(struct text *out, const struct history *history, uint64_t after)
{
    json_open_object(out, "history");
    json_number(out, "step_seconds", HISTORY_STEP_S);
    json_number(out, "last", history->last);
    for (int i = 0; i < SERIES_COUNT; i++)
        write_points(out, series_name((enum series)i), history->points[i], history, after);
    for (size_t i = 0; i < sizeof old_names / sizeof old_names[0]; i++)
        write_points(out, old_names[i].name, history->points[old_names[i].series], history, after);
    json_close_object(out);
}

static void write_rates(struct text *out, const struct snapshot *s)
{
    json_open_object(out, "now");
    for (int i = 0; i < SERIES_COUNT; i++)
        json_real(out, series_name((enum series)i), history_now(s->history, (enum series)i));
    for (size_t i = 0; i < sizeof old_names / sizeof old_names[0]; i++)
        json_real(out, old_names[i].name, history_now(s->history, old_names[i].series));
    json_close_object(out);
}

static void write_track(struct text *out, const struct snapshot *s, size_t i, uint64_t after)
{
    if (i >= s->history->n_limits || after == STATS_NO_HISTORY)
        return;
    json_open_object(out, "history");
    write_points(out, "allowed_per_second", s->history->tracks[i].allowed, s->history, after);
    write_points(out, "over_per_second", s->history->tracks[i].over, s->history, after);
    json_close_object(out);
}

static void write_subjects(struct text *out, const struct snapshot *s)
{
    json_open_object(out, "subjects");
    json_number(out, "of_connections", s->subjects);
    json_number(out, "of_keys", s->key_subjects);
    metrics_json(out, s, OF_SUBJECTS, 0);
    json_close_object(out);
}

static void write_holders(struct text *out, const struct snapshot *s, size_t i)
{
    struct holder holders[HOLDERS_MAX];
    size_t n = holders_of(s, i, holders);
    json_open_list(out, "holders");
    for (size_t h = 0; h < n; h++) {
        json_open_row(out);
        json_text(out, "subject", holders[h].subject);
        if (holders[h].used >= 0)
            json_real(out, "used", holders[h].used);
        json_number(out, "refused_per_second", holders[h].refused_per_s);
        json_number(out, "commands_per_second", holders[h].commands_per_s);
        json_close_object(out);
    }
    json_close_list(out);
}

static void write_findings(struct text *out, const struct snapshot *s)
{
    struct findings findings;
    findings_make(&findings, s);
    json_open_list(out, "findings");
    for (size_t i = 0; i < findings.n; i++) {
        const struct finding *finding = &findings.rows[i];
        json_open_row(out);
        json_string(out, "level", finding_level_name(finding->level));
        json_text(out, "title", slice_of(finding->title.at, finding->title.len));
        json_text(out, "more", slice_of(finding->more.at, finding->more.len));
        json_string(out, "at", finding->at);
        json_close_object(out);
    }
    json_close_list(out);
    findings_free(&findings);
}

static void write_own(struct text *out, const struct snapshot *s,
                      const struct snapshot_limit *limit)
{
    struct text own = {0};
    own_lines_name(&own, s, limit);
    json_text(out, "own", own.len > 0 ? slice_of(own.at, own.len) : SLICE(""));
    out->is_broken |= own.is_broken;
    text_fini(&own);
}

static void write_limits(struct text *out, const struct snapshot *s, uint64_t after)
{
    json_open_list(out, "limits");
    for (size_t i = 0; i < s->n_limits; i++) {
        const struct snapshot_limit *limit = &s->limits[i];
        json_open_row(out);
        json_string(out, "rule", limit->rule);
        json_string(out, "policy", limit->policy);
        json_string(out, "unit", limit->unit);
        json_string(out, "amount", limit->amount);
        write_own(out, s, limit);
        json_string(out, "scope", limit->scope);
        json_string(out, "over", limit->action);
        json_string(out, "mode", limit->is_shadow ? "shadow" : "enforce");
        metrics_json(out, s, OF_LIMIT, i);
        json_string(out, "state", limit_state_name(limit->state));
        json_real(out, "allowed_per_second", limit->allowed_per_s);
        json_real(out, "over_per_second", limit->over_per_s);
        json_real(out, "used", limit->used);
        json_string(out, "fullest_subject", limit->fullest);
        write_holders(out, s, i);
        write_track(out, s, i, after);
        json_close_object(out);
    }
    json_close_list(out);
}

static void stats_write_named(struct text *out, const struct snapshot *s)
{
    json_open_list(out, "named_limits");
    for (size_t i = 0; i < s->n_named; i++) {
        const struct snapshot_named *named = &s->named[i];
        json_open_row(out);
        json_string(out, "name", named->name);
        json_string(out, "algorithm", named->algorithm);
        json_string(out, "rates", named->rates);
        json_string(out, "tz", named->zone);
        json_string(out, "penalty", named->penalty);
        json_string(out, "over", named->is_shadow ? "shadow" : "refuse");
        metrics_json(out, s, OF_NAMED, i);
        json_number(out, "passed", named->results[NAMED_PASSED]);
        json_number(out, "limited", named->results[NAMED_LIMITED]);
        json_number(out, "shadow_limited", named->results[NAMED_SHADOWED]);
        json_number(out, "errors", named->results[NAMED_ERROR]);
        json_real(out, "p50_seconds",
                  (double)histo_quantile_ns(&named->times, 0.5) / (double)NS_PER_S);
        json_real(out, "p99_seconds",
                  (double)histo_quantile_ns(&named->times, 0.99) / (double)NS_PER_S);
        json_close_object(out);
    }
    json_close_list(out);
}

static void write_top(struct text *out, const char *key, const struct snapshot *s,
                      const struct snapshot_top *top)
{
    json_open_list(out, key);
    for (size_t i = 0; i < top->n; i++) {
        const struct top_entry *row = &top->rows[i];
        json_open_row(out);
        json_text(out, "subject", slice_of(row->subject, row->subject_len));
        json_text(out, "policy", slice_of(row->policy, row->policy_len));
        json_number(out, "per_second", row->per_s);
        json_number(out, "of_others_per_second", row->over_per_s);
        json_real(out, "over_seconds", (double)row->over_ns / (double)NS_PER_S);
        json_number(out, "share_waited_us_per_second", row->share_us_per_s);
        json_number(out, "turn_us_per_second", row->share_us_per_s); /* old name */
        if (holders_refuser(s, row) != NULL)
            json_string(out, "refused_by", holders_refuser(s, row));
        json_close_object(out);
    }
    json_close_list(out);
}

static void write_events(struct text *out, const struct snapshot *s)
{
    json_open_list(out, "events");
    for (size_t i = 0; i < s->n_events; i++) {
        json_open_row(out);
        json_number(out, "id", s->events[i].id);
        json_number(out, "time_ms", s->events[i].unix_ms);
        json_string(out, "kind", s->events[i].kind);
        json_string(out, "text", s->events[i].text);
        json_number(out, "count", s->events[i].count);
        json_number(out, "first_ms", s->events[i].first_unix_ms);
        json_close_object(out);
    }
    json_close_list(out);
}

void stats_write(struct text *out, const struct snapshot *s, uint64_t after)
{
    text_add(out, SLICE("{"));
    write_process(out, s);
    write_findings(out, s);
    write_upstream(out, s);
    write_clients(out, s);
    write_commands(out, s);
    json_open_object(out, "times");
    metrics_json(out, s, OF_TIMES, 0);
    json_close_object(out);
    write_subjects(out, s);
    write_limits(out, s, after);
    stats_write_named(out, s);
    json_open_object(out, "top");
    for (unsigned by = 0; by < TOP_BY_COUNT; by++)
        write_top(out, top_name((enum top_by)by), s, &s->tops[by]);
    write_top(out, "turns", s, &s->tops[TOP_SHARE]); /* old name */
    json_close_object(out);
    write_events(out, s);
    write_rates(out, s);
    if (after != STATS_NO_HISTORY)
        write_history(out, s->history, after);
    text_add(out, SLICE("}\n"));
}
