/*
 * The table of metrics: one row each, and a function that shows its series. All series are there from the start.
 */
#include "admin/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "admin/process.h"
#include "base/log.h"
#include "limit/own.h"

#define MS_PER_S 1000.0
#define NS_IN_S 1e9

struct sheet;

struct metric {
    const char *name;
    const char *type;
    void (*show)(struct sheet *sheet);
    const char *help;
};

/* What is being written. */
struct sheet {
    struct text *out;
    enum metrics_format format;
    const struct snapshot *snapshot;
    const struct metric *metric;
    struct process process;
};

struct label {
    const char *name;
    const char *value;
};

#define LABELS(...) ((const struct label[]){__VA_ARGS__, {NULL, NULL}})
#define NO_LABELS ((const struct label[]){{NULL, NULL}})

/* ---- one series ---- */

static void put_labels(struct sheet *sheet, const struct label *labels)
{
    struct text labelled = {0};
    for (const struct label *label = labels; label->name; label++) {
        text_print(&labelled, "%s%s=\"", label == labels ? "" : ",", label->name);
        text_add_label(&labelled, slice_str(label->value));
        text_add(&labelled, SLICE("\""));
    }
    if (sheet->format == METRICS_CSV)
        text_add_csv(sheet->out, slice_of(labelled.at, labelled.len));
    else if (labelled.len > 0)
        text_print(sheet->out, "{%.*s}", (int)labelled.len, labelled.at);
    text_fini(&labelled);
}

static void put_name(struct sheet *sheet, const char *suffix, const struct label *labels)
{
    bool is_csv = sheet->format == METRICS_CSV;
    text_print(sheet->out, "%s%s%s", sheet->metric->name, suffix, is_csv ? "," : "");
    put_labels(sheet, labels);
    text_add(sheet->out, is_csv ? SLICE(",") : SLICE(" "));
}

static void put(struct sheet *sheet, const struct label *labels, uint64_t value)
{
    put_name(sheet, "", labels);
    text_print(sheet->out, "%" PRIu64 "\n", value);
}

static void put_real(struct sheet *sheet, const struct label *labels, double value)
{
    put_name(sheet, "", labels);
    text_print(sheet->out, "%.15g\n", value);
}

static void put_bucket(struct sheet *sheet, const char *bound, uint64_t n)
{
    put_name(sheet, "_bucket", LABELS({"le", bound}));
    text_print(sheet->out, "%" PRIu64 "\n", n);
}

static void put_histo(struct sheet *sheet, const struct histo *histo)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < HISTO_BOUNDS; i++) {
        char bound[32];
        n += count_read(&histo->buckets[i]);
        snprintf(bound, sizeof bound, "%.15g", (double)histo_bound_ns(i) / NS_IN_S);
        if (i >= HISTO_SHOWN)
            put_bucket(sheet, bound, n);
    }
    n = histo_count(histo);
    put_bucket(sheet, "+Inf", n);
    put_name(sheet, "_sum", NO_LABELS);
    text_print(sheet->out, "%.15g\n", (double)count_read(&histo->sum_ns) / NS_IN_S);
    put_name(sheet, "_count", NO_LABELS);
    text_print(sheet->out, "%" PRIu64 "\n", n);
}

/* ---- the process ---- */

static void show_build(struct sheet *s)
{
    put(s, LABELS({"version", s->snapshot->version}, {"libuv", s->snapshot->libuv}, {"hiredis", s->snapshot->hiredis}),
        1);
}

static void show_cpu(struct sheet *s)
{
    put_real(s, NO_LABELS, s->process.cpu_seconds);
}

static void show_resident(struct sheet *s)
{
    put(s, NO_LABELS, s->process.resident_bytes);
}

static void show_open_fds(struct sheet *s)
{
    put(s, NO_LABELS, s->process.open_fds);
}

static void show_max_fds(struct sheet *s)
{
    put(s, NO_LABELS, s->process.max_fds);
}

static void show_start(struct sheet *s)
{
    put_real(s, NO_LABELS, (double)s->snapshot->started_unix_ms / MS_PER_S);
}

static void show_workers(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->workers);
}

static void show_turns(struct sheet *s)
{
    put_histo(s, &s->snapshot->turns);
}

static void show_ready(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->not_ready[0] == '\0');
}

static void show_draining(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->is_draining);
}

static void show_taken(struct sheet *s)
{
    put_real(s, NO_LABELS, (double)s->snapshot->unix_ms / MS_PER_S);
}

/* ---- the log ---- */

static void show_suppressed(struct sheet *s)
{
    for (int site = LOG_SITE_NONE + 1; site < LOG_SITE_COUNT; site++)
        put(s, LABELS({"site", log_site_name((enum log_site)site)}), log_suppressed((enum log_site)site));
}

static void show_lost_lines(struct sheet *s)
{
    put(s, NO_LABELS, log_lost());
}

/* ---- the configuration ---- */

static void show_reload_good(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->is_reload_good);
}

static void show_reloaded(struct sheet *s)
{
    put_real(s, NO_LABELS, (double)s->snapshot->reloaded_unix_ms / MS_PER_S);
}

static void show_reloads(struct sheet *s)
{
    put(s, LABELS({"result", "success"}), s->snapshot->reloads);
    put(s, LABELS({"result", "failure"}), s->snapshot->failed_reloads);
}

/* ---- clients ---- */

static void show_accepted(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}),
            count_read(&s->snapshot->counts.listeners[l].accepted));
}

static void show_accept_errors(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}),
            count_read(&s->snapshot->counts.listeners[l].accept_errors));
}

static void show_open(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}), s->snapshot->listeners[l].open);
}

static void show_open_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->max_clients);
}

static void show_rejected(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        for (int r = 0; r < REJECTED_COUNT; r++)
            put(s, LABELS({"listener", s->snapshot->listeners[l].name}, {"reason", rejection_name((enum rejection)r)}),
                count_read(&s->snapshot->counts.listeners[l].rejected[r]));
}

static void show_closed(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        for (int r = 0; r < CLOSED_COUNT; r++)
            put(s,
                LABELS({"listener", s->snapshot->listeners[l].name},
                       {"reason", ending_reason_name((enum ending_reason)r)}),
                count_read(&s->snapshot->counts.listeners[l].closed[r]));
}

static void show_commands(struct sheet *s)
{
    for (int kind = 0; kind < COMMAND_KINDS; kind++)
        for (int r = 0; r < RESULT_COUNT; r++)
            put(s,
                LABELS({"class", command_kind_name((enum command_kind)kind)},
                       {"result", counted_result_name((enum counted_result)r)}),
                count_read(&s->snapshot->counts.commands[kind][r]));
}

static void show_protocol_errors(struct sheet *s)
{
    for (int e = 0; e < ERR_COUNT; e++)
        if (protocol_error_name((enum err)e))
            put(s, LABELS({"side", "client"}, {"reason", protocol_error_name((enum err)e)}),
                count_read(&s->snapshot->counts.protocol_errors[e]));
    put(s, LABELS({"side", "upstream"}, {"reason", "reply"}), count_read(&s->snapshot->lanes.lost[LOSS_PROTOCOL]));
}

static void show_read(struct sheet *s)
{
    put(s, LABELS({"side", "client"}), s->snapshot->client_read);
    put(s, LABELS({"side", "upstream"}), s->snapshot->upstream_read);
}

static void show_written(struct sheet *s)
{
    put(s, LABELS({"side", "client"}), s->snapshot->client_written);
    put(s, LABELS({"side", "upstream"}), s->snapshot->upstream_written);
}

static void show_limit_commands(struct sheet *s)
{
    for (size_t i = 0; i < own_count() && i < COUNTED_OWN; i++) {
        const char *bar = strchr(own_row(i)->name, '|');
        const char *name = bar ? bar + 1 : strcmp(own_row(i)->name, "limit") == 0 ? "unknown" : own_row(i)->name;
        put(s, LABELS({"subcommand", name}, {"result", "ok"}), count_read(&s->snapshot->counts.own[i][0]));
        put(s, LABELS({"subcommand", name}, {"result", "error"}), count_read(&s->snapshot->counts.own[i][1]));
    }
}

/* ---- limits ---- */

static void put_decisions(struct sheet *s, const char *rule, const struct snapshot_limit *limit)
{
    put(s, LABELS({"rule", rule}, {"decision", "allowed"}), limit->admitted);
    put(s, LABELS({"rule", rule}, {"decision", "throttled"}), limit->refused);
    put(s, LABELS({"rule", rule}, {"decision", "delayed"}), limit->delayed);
    put(s, LABELS({"rule", rule}, {"decision", "shadow_throttled"}), limit->shadowed);
}

static size_t n_rules(const struct sheet *s)
{
    return s->snapshot->n_limits < METRICS_RULES ? s->snapshot->n_limits : METRICS_RULES;
}

static void show_decisions(struct sheet *s)
{
    struct snapshot_limit others = {0};
    for (size_t i = 0; i < n_rules(s); i++)
        put_decisions(s, s->snapshot->limits[i].rule, &s->snapshot->limits[i]);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_limits; i++) {
        others.admitted += s->snapshot->limits[i].admitted;
        others.refused += s->snapshot->limits[i].refused;
        others.delayed += s->snapshot->limits[i].delayed;
        others.shadowed += s->snapshot->limits[i].shadowed;
    }
    put_decisions(s, "_other", &others);
}

static void show_rates(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++)
        put_real(s, LABELS({"rule", s->snapshot->limits[i].rule}), s->snapshot->limits[i].per_s);
}

static void show_bursts(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++)
        put(s, LABELS({"rule", s->snapshot->limits[i].rule}), s->snapshot->limits[i].burst);
}

static void show_rules(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++) {
        const struct snapshot_limit *limit = &s->snapshot->limits[i];
        put(s,
            LABELS({"rule", limit->rule}, {"policy", limit->policy}, {"unit", limit->unit}, {"scope", limit->scope},
                   {"over", limit->action}, {"mode", limit->is_shadow ? "shadow" : "enforce"}),
            1);
    }
}

static void show_tracked(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++)
        put(s, LABELS({"rule", s->snapshot->limits[i].rule}), s->snapshot->limits[i].subjects);
}

static void show_delays(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.delay);
}

/* ---- times ---- */

static void show_requests(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.request);
}

static void show_upstream_times(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.upstream);
}

static void show_own(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.own);
}

/* ---- the upstream ---- */

static void show_up(struct sheet *s)
{
    put(s, LABELS({"upstream", s->snapshot->upstream}), s->snapshot->is_up);
}

static void show_lanes(struct sheet *s)
{
    for (int home = HOME_NONE + 1; home < HOME_COUNT; home++)
        put(s, LABELS({"upstream", s->snapshot->upstream}, {"state", lane_home_name((enum lane_home)home)}),
            count_read(&s->snapshot->lanes.homes[home]));
}

static void show_in_flight(struct sheet *s)
{
    put(s, LABELS({"upstream", s->snapshot->upstream}), count_read(&s->snapshot->lanes.in_flight));
}

static void show_opened(struct sheet *s)
{
    put(s, LABELS({"upstream", s->snapshot->upstream}), count_read(&s->snapshot->lanes.opened));
}

static void show_losses(struct sheet *s)
{
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        put(s, LABELS({"upstream", s->snapshot->upstream}, {"reason", lane_loss_name((enum lane_loss)loss)}),
            count_read(&s->snapshot->lanes.lost[loss]));
}

/* ---- the table ---- */

static const struct metric metrics[] = {
    {"weir_build_info", "gauge", show_build, "Always 1; the labels say what runs."},
    {"process_cpu_seconds_total", "counter", show_cpu, "Processor time used, user and system."},
    {"process_resident_memory_bytes", "gauge", show_resident, "Memory in use."},
    {"process_open_fds", "gauge", show_open_fds, "Open file descriptors."},
    {"process_max_fds", "gauge", show_max_fds, "Most file descriptors that may be open."},
    {"process_start_time_seconds", "gauge", show_start, "When the process started, in seconds since 1970."},
    {"weir_workers", "gauge", show_workers, "Worker threads."},
    {"weir_event_loop_lag_seconds", "histogram", show_turns, "How long the turns of the workers' loops took."},
    {"weir_ready", "gauge", show_ready, "1 while weir serves clients, as /readyz says."},
    {"weir_draining", "gauge", show_draining, "1 once weir has been told to stop."},
    {"weir_snapshot_timestamp_seconds", "gauge", show_taken, "When these numbers were gathered: once a second."},
    {"weir_log_messages_suppressed_total", "counter", show_suppressed,
     "Lines of the log that were too many of a kind."},
    {"weir_log_lines_lost_total", "counter", show_lost_lines, "Lines of the log that could not be written."},
    {"weir_config_last_reload_successful", "gauge", show_reload_good, "1 when the last reload went well."},
    {"weir_config_last_reload_success_timestamp_seconds", "gauge", show_reloaded,
     "When the running configuration was read."},
    {"weir_config_reloads_total", "counter", show_reloads, "Reloads, by how they went."},
    {"weir_connections_accepted_total", "counter", show_accepted, "Connections accepted."},
    {"weir_accept_errors_total", "counter", show_accept_errors,
     "Attempts to accept for which there was no descriptor."},
    {"weir_connections", "gauge", show_open, "Clients connected now."},
    {"weir_connections_limit", "gauge", show_open_limit, "Most clients that may be connected: max-clients."},
    {"weir_connections_rejected_total", "counter", show_rejected, "Newcomers turned away, by why."},
    {"weir_connections_closed_total", "counter", show_closed, "Clients that are gone, by why."},
    {"weir_commands_total", "counter", show_commands, "Commands of clients, by what they are and what became of them."},
    {"weir_limit_commands_total", "counter", show_limit_commands, "LIMIT commands."},
    {"weir_protocol_errors_total", "counter", show_protocol_errors, "Bytes that are no RESP, by who sent them."},
    {"weir_net_input_bytes_total", "counter", show_read, "Bytes read, from clients and from the upstream."},
    {"weir_net_output_bytes_total", "counter", show_written, "Bytes written, to clients and to the upstream."},
    {"weir_decisions_total", "counter", show_decisions,
     "What each limit has decided; allowed counts in the limit's own unit."},
    {"weir_rule_rate", "gauge", show_rates, "What the limit lets pass each second, in its own unit."},
    {"weir_rule_burst", "gauge", show_bursts, "What the limit lets pass at once."},
    {"weir_rule_info", "gauge", show_rules, "Always 1; the labels say what the limit is."},
    {"weir_rule_tracked_clients", "gauge", show_tracked, "Subjects of the limit's policy remembered now."},
    {"weir_throttle_delay_seconds", "histogram", show_delays, "How long limits have made commands wait."},
    {"weir_request_duration_seconds", "histogram", show_requests,
     "From when a command is the next of its client until its reply has been written."},
    {"weir_upstream_request_duration_seconds", "histogram", show_upstream_times,
     "From when a command is sent to the upstream until its answer has come."},
    {"weir_proxy_overhead_seconds", "histogram", show_own,
     "What commands have spent in weir itself, without upstream and limits' delays."},
    {"weir_upstream_up", "gauge", show_up, "1 while the upstream answers."},
    {"weir_upstream_connections", "gauge", show_lanes, "Connections to the upstream, by what they are used for."},
    {"weir_upstream_inflight_requests", "gauge", show_in_flight, "Requests sent to the upstream and not answered."},
    {"weir_upstream_connects_total", "counter", show_opened, "Connections to the upstream that were begun."},
    {"weir_upstream_errors_total", "counter", show_losses, "Connections to the upstream that failed, by why."},
};

void metrics_write(struct text *out, const struct snapshot *snapshot, enum metrics_format format, const char *only)
{
    struct sheet sheet = {.out = out, .format = format, .snapshot = snapshot, .process = process_look()};
    if (format == METRICS_CSV)
        text_add(out, SLICE("metric,labels,value\n"));
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        sheet.metric = &metrics[i];
        if (only && strcmp(only, metrics[i].name) != 0)
            continue;
        if (format == METRICS_TEXT)
            text_print(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help, metrics[i].name,
                       metrics[i].type);
        metrics[i].show(&sheet);
    }
}
