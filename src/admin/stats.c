#include "admin/stats.h"

#include <inttypes.h>

/* "name": and what belongs between two members. */
static void name(struct text *out, const char *key)
{
    bool is_first = out->len == 0 || out->at[out->len - 1] == '{' || out->at[out->len - 1] == '[';
    if (!is_first)
        text_add(out, SLICE(","));
    text_add_json(out, slice_str(key));
    text_add(out, SLICE(":"));
}

static void number(struct text *out, const char *key, uint64_t value)
{
    name(out, key);
    text_print(out, "%" PRIu64, value);
}

static void real(struct text *out, const char *key, double value)
{
    name(out, key);
    text_print(out, "%.15g", value);
}

static void flag(struct text *out, const char *key, bool value)
{
    name(out, key);
    text_print(out, "%s", value ? "true" : "false");
}

static void string(struct text *out, const char *key, const char *value)
{
    name(out, key);
    text_add_json(out, slice_str(value));
}

static void open_object(struct text *out, const char *key)
{
    name(out, key);
    text_add(out, SLICE("{"));
}

static void open_list(struct text *out, const char *key)
{
    name(out, key);
    text_add(out, SLICE("["));
}

static void open_row(struct text *out)
{
    text_print(out, "%s{", out->at[out->len - 1] == '[' ? "" : ",");
}

static void close_object(struct text *out)
{
    text_add(out, SLICE("}"));
}

static void close_list(struct text *out)
{
    text_add(out, SLICE("]"));
}

static void write_process(struct text *out, const struct snapshot *s)
{
    string(out, "version", s->version);
    number(out, "time_ms", s->unix_ms);
    real(out, "uptime_seconds", (double)(s->unix_ms - s->started_unix_ms) / 1000.0);
    number(out, "workers", s->workers);
    string(out, "lanes", s->is_private ? "private" : "shared");
    string(out, "mode", s->is_shadow ? "shadow" : "enforce");
    flag(out, "ready", s->not_ready[0] == '\0');
    string(out, "not_ready_because", s->not_ready);
    flag(out, "draining", s->is_draining);
    open_object(out, "reloads");
    number(out, "success", s->reloads);
    number(out, "failure", s->failed_reloads);
    flag(out, "last_successful", s->is_reload_good);
    number(out, "last_success_ms", s->reloaded_unix_ms);
    close_object(out);
}

static void write_upstream(struct text *out, const struct snapshot *s)
{
    open_object(out, "upstream");
    string(out, "address", s->upstream);
    flag(out, "up", s->is_up);
    number(out, "connects", count_read(&s->lanes.opened));
    open_object(out, "connections");
    for (int home = HOME_NONE + 1; home < HOME_COUNT; home++)
        number(out, lane_home_name((enum lane_home)home), count_read(&s->lanes.homes[home]));
    close_object(out);
    open_object(out, "errors");
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        number(out, lane_loss_name((enum lane_loss)loss), count_read(&s->lanes.lost[loss]));
    close_object(out);
    number(out, "bytes_read", s->upstream_read);
    number(out, "bytes_written", s->upstream_written);
    close_object(out);
}

static void write_listener(struct text *out, const struct snapshot *s, size_t l)
{
    const struct listener_counts *counts = &s->counts.listeners[l];
    open_row(out);
    string(out, "listener", s->listeners[l].name);
    number(out, "connected", s->listeners[l].open);
    number(out, "accepted", count_read(&counts->accepted));
    open_object(out, "rejected");
    for (int r = 0; r < REJECTED_COUNT; r++)
        number(out, rejection_name((enum rejection)r), count_read(&counts->rejected[r]));
    close_object(out);
    open_object(out, "closed");
    for (int r = 0; r < CLOSED_COUNT; r++)
        number(out, ending_reason_name((enum ending_reason)r), count_read(&counts->closed[r]));
    close_object(out);
    close_object(out);
}

static void write_clients(struct text *out, const struct snapshot *s)
{
    open_object(out, "clients");
    number(out, "max", s->max_clients);
    number(out, "bytes_read", s->client_read);
    number(out, "bytes_written", s->client_written);
    open_list(out, "listeners");
    for (size_t l = 0; l < s->n_listeners; l++)
        write_listener(out, s, l);
    close_list(out);
    close_object(out);
}

static void write_commands(struct text *out, const struct snapshot *s)
{
    open_object(out, "commands");
    for (int kind = 0; kind < COMMAND_KINDS; kind++) {
        open_object(out, command_kind_name((enum command_kind)kind));
        for (int r = 0; r < RESULT_COUNT; r++)
            number(out, counted_result_name((enum counted_result)r), count_read(&s->counts.commands[kind][r]));
        close_object(out);
    }
    close_object(out);
}

static void write_limits(struct text *out, const struct snapshot *s)
{
    open_list(out, "limits");
    for (size_t i = 0; i < s->n_limits; i++) {
        const struct snapshot_limit *limit = &s->limits[i];
        open_row(out);
        string(out, "rule", limit->rule);
        string(out, "policy", limit->policy);
        string(out, "unit", limit->unit);
        string(out, "amount", limit->amount);
        real(out, "per_second", limit->per_s);
        number(out, "burst", limit->burst);
        string(out, "scope", limit->scope);
        string(out, "over", limit->action);
        string(out, "mode", limit->is_shadow ? "shadow" : "enforce");
        number(out, "allowed", limit->admitted);
        number(out, "delayed", limit->delayed);
        number(out, "throttled", limit->refused);
        number(out, "shadow_throttled", limit->shadowed);
        number(out, "subjects", limit->subjects);
        close_object(out);
    }
    close_list(out);
}

static void write_top(struct text *out, const char *key, const struct snapshot_top *top)
{
    open_list(out, key);
    for (size_t i = 0; i < top->n; i++) {
        const struct top_entry *row = &top->rows[i];
        open_row(out);
        name(out, "subject");
        text_add_json(out, slice_of(row->subject, row->subject_len));
        name(out, "policy");
        text_add_json(out, slice_of(row->policy, row->policy_len));
        number(out, "per_second", row->per_s);
        number(out, "of_others_per_second", row->over_per_s);
        close_object(out);
    }
    close_list(out);
}

static void write_events(struct text *out, const struct snapshot *s)
{
    open_list(out, "events");
    for (size_t i = 0; i < s->n_events; i++) {
        open_row(out);
        number(out, "id", s->events[i].id);
        number(out, "time_ms", s->events[i].unix_ms);
        string(out, "kind", s->events[i].kind);
        string(out, "text", s->events[i].text);
        close_object(out);
    }
    close_list(out);
}

void stats_write(struct text *out, const struct snapshot *s)
{
    text_add(out, SLICE("{"));
    write_process(out, s);
    write_upstream(out, s);
    write_clients(out, s);
    write_commands(out, s);
    write_limits(out, s);
    open_object(out, "top");
    write_top(out, "commands", &s->tops[TOP_COMMANDS]);
    write_top(out, "refused", &s->tops[TOP_REFUSED]);
    write_top(out, "bytes", &s->tops[TOP_BYTES]);
    close_object(out);
    write_events(out, s);
    text_add(out, SLICE("}\n"));
}
