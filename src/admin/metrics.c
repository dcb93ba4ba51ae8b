/*
 * The table of metrics: each row has the function that writes its series. All series exist from the start.
 */
#include "admin/metrics.h"

#include <string.h>

#include "admin/show.h"
#include "base/log.h"
#include "base/log_site.h"

#define MS_PER_S 1000.0

struct metric {
    const char *name;
    const char *type;
    void (*show)(struct sheet *sheet);
    const char *help;
};

/* ---- the process ---- */

static void show_build(struct sheet *s)
{
    const struct snapshot *snapshot = s->snapshot;
    put(s,
        LABELS({"name", snapshot->name}, {"version", snapshot->version}, {"libuv", snapshot->libuv},
               {"hiredis", snapshot->hiredis}),
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

static void show_memory(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->memory_bytes);
}

static void show_memory_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->memory_limit_bytes);
}

static void show_memory_step(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->memory_step);
}

static void show_stalled(struct sheet *s)
{
    put(s, NO_LABELS, count_read(&s->snapshot->counts.stalled));
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
    {"weir_memory_bytes", "gauge", show_memory, "Memory that weir keeps for clients, counted by itself."},
    {"weir_memory_limit_bytes", "gauge", show_memory_limit, "memory-limit; 0 is none."},
    {"weir_memory_step", "gauge", show_memory_step, "How short of memory weir is, from 0 to 3."},
    {"weir_clients_stalled", "gauge", show_stalled, "Clients that are not read from, for want of memory."},
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
    {"weir_outage_requests_total", "counter", show_fates,
     "Requests that the upstream's absence, or a change of its master, has concerned, by what became of them."},
    {"weir_net_input_bytes_total", "counter", show_read, "Bytes read, from clients and from the upstream."},
    {"weir_net_output_bytes_total", "counter", show_written, "Bytes written, to clients and to the upstream."},
    {"weir_backpressure_pauses_total", "counter", show_pauses,
     "Times that reading stopped until what had been read could go on."},
    {"weir_decisions_total", "counter", show_decisions,
     "What each limit has decided; allowed counts in the limit's own unit."},
    {"weir_near_limit_total", "counter", show_near, "Times that what passed left more than 80 % of the burst used."},
    {"weir_rule_rate", "gauge", show_rates, "What the limit lets pass each second, in its own unit."},
    {"weir_rule_burst", "gauge", show_bursts, "What the limit lets pass at once."},
    {"weir_rule_info", "gauge", show_rules, "Always 1; the labels say what the limit is."},
    {"weir_rule_tracked_clients", "gauge", show_tracked, "Subjects of the limit's policy remembered now."},
    {"weir_subjects", "gauge", show_subjects, "Subjects remembered now."},
    {"weir_subjects_limit", "gauge", show_subjects_limit, "Most subjects of either kind: max-subjects."},
    {"weir_subjects_blocked", "gauge", show_blocks, "Subjects that an operator has blocked."},
    {"weir_blocked_commands_total", "counter", show_blocked,
     "Commands refused because an operator has blocked their subject."},
    {"weir_subjects_overflowed", "gauge", show_overflow, "1 once newcomers have had to share one subject."},
    {"weir_throttle_delay_seconds", "histogram", show_delays, "How long limits have made commands wait."},
    {"weir_share_wait_seconds", "histogram", show_share_waits,
     "How long clients have waited for their fair share, while others sent too."},
    {"weir_turn_wait_seconds", "histogram", show_share_waits, "The old name of weir_share_wait_seconds."},
    {"weir_named_limit_calls_total", "counter", show_named,
     "Calls of LIMIT CHECK, by the limit and what became of them."},
    {"weir_named_limit_duration_seconds", "histogram", show_named_times,
     "How long those that may not wait took, as their client sees it."},
    {"weir_named_limit_info", "gauge", show_named_info, "Always 1; the labels say what the limit is."},
    {"weir_named_limit_overrides", "gauge", show_named_overrides,
     "Keys of the limit that have rates of their own now."},
    {"weir_request_duration_seconds", "histogram", show_requests,
     "From when a command is the next of its client until its reply has been written."},
    {"weir_upstream_request_duration_seconds", "histogram", show_upstream_times,
     "From when a command is sent to the upstream until its answer has come."},
    {"weir_proxy_overhead_seconds", "histogram", show_overhead,
     "What commands have spent in weir itself, without upstream, limits' delays and waiting for a fair share."},
    {"weir_upstream_up", "gauge", show_up, "1 while the upstream answers."},
    {"weir_upstream_info", "gauge", show_upstream_info,
     "Always 1; the labels say which address is in use, and what the server there is."},
    {"weir_upstream_master", "gauge", show_masters, "1 for the server that takes clients' commands, 0 for the others."},
    {"weir_upstream_has_master", "gauge", show_has_master, "1 while one of the servers takes clients' commands."},
    {"weir_upstream_lag_seconds", "gauge", show_lags,
     "How far a replica is behind its master, where clients read there."},
    {"weir_upstream_epoch", "gauge", show_epochs, "The epoch by which sentinels name the master."},
    {"weir_upstream_changed_timestamp_seconds", "gauge", show_changes,
     "When the role of a server changed last, or whether it can be reached; 0: never."},
    {"weir_slots", "gauge", show_slots_served, "Slots of a Redis Cluster, by whether their master is there."},
    {"weir_upstream_slots", "gauge", show_slots, "Slots of a Redis Cluster that the node serves."},
    {"weir_upstream_slots_moving", "gauge", show_slots_moving,
     "Slots of a Redis Cluster that are on their way from the node or to it."},
    {"weir_upstream_redirects_total", "counter", show_redirects,
     "Commands that a node of a Redis Cluster has not run, by what it said, and those that were given up."},
    {"weir_upstream_requests_total", "counter", show_sent, "Requests sent to the upstream, weir's own among them."},
    {"weir_upstream_state", "gauge", show_states, "1 for the state that the upstream is in, 0 for the others."},
    {"weir_upstream_oldest_seconds", "gauge", show_oldest,
     "How long the oldest command that does not block has waited for the upstream's answer."},
    {"weir_upstream_connections", "gauge", show_lanes, "Connections to the upstream, by what they are used for."},
    {"weir_upstream_inflight_requests", "gauge", show_in_flight, "Requests sent to the upstream and not answered."},
    {"weir_upstream_blocking_requests", "gauge", show_blocking, "Of them those that may wait in Redis."},
    {"weir_upstream_subscribed_connections", "gauge", show_subscribed,
     "Connections to the upstream with subscriptions."},
    {"weir_upstream_connects_total", "counter", show_opened, "Connections to the upstream that were begun."},
    {"weir_upstream_connections_limit", "gauge", show_lanes_limit, "Most connections for clients: max-lanes."},
    {"weir_upstream_error_replies_total", "counter", show_error_replies,
     "Errors that the upstream answered clients' commands."},
    {"weir_upstream_pushes_dropped_total", "counter", show_pushes_dropped,
     "Pushes that nobody on their connection had asked for."},
    {"weir_upstream_errors_total", "counter", show_losses, "Connections to the upstream that failed, by why."},
};

void metrics_write(struct text *out, const struct snapshot *snapshot, enum sheet_format format, const char *only)
{
    struct sheet sheet = {.out = out, .format = format, .snapshot = snapshot, .process = process_look()};
    if (format == SHEET_CSV)
        text_add(out, SLICE("metric,labels,value\n"));
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        sheet.name = metrics[i].name;
        if (only != NULL && strcmp(only, metrics[i].name) != 0)
            continue;
        if (format == SHEET_TEXT)
            text_print(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help, metrics[i].name,
                       metrics[i].type);
        metrics[i].show(&sheet);
    }
}
