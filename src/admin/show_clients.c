/*
 * Metrics about clients: their connections, their commands, and how long these took.
 */
#include "admin/show.h"

#include <string.h>

#include "limit/command/own.h"

/* ---- connections ---- */

void show_accepted(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}),
            count_read(&s->snapshot->counts.listeners[l].accepted));
}

void show_accept_errors(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}),
            count_read(&s->snapshot->counts.listeners[l].accept_errors));
}

void show_open(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        put(s, LABELS({"listener", s->snapshot->listeners[l].name}), s->snapshot->listeners[l].open);
}

void show_open_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->max_clients);
}

void show_rejected(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        for (int r = 0; r < REJECTED_COUNT; r++)
            put(s, LABELS({"listener", s->snapshot->listeners[l].name}, {"reason", rejection_name((enum rejection)r)}),
                count_read(&s->snapshot->counts.listeners[l].rejected[r]));
}

void show_closed(struct sheet *s)
{
    for (size_t l = 0; l < s->snapshot->n_listeners; l++)
        for (int r = 0; r < CLOSED_COUNT; r++)
            put(s,
                LABELS({"listener", s->snapshot->listeners[l].name},
                       {"reason", ending_reason_name((enum ending_reason)r)}),
                count_read(&s->snapshot->counts.listeners[l].closed[r]));
}

/* ---- commands ---- */

void show_commands(struct sheet *s)
{
    for (int kind = 0; kind < COMMAND_KINDS; kind++)
        for (int r = 0; r < RESULT_COUNT; r++)
            put(s,
                LABELS({"class", command_kind_name((enum command_kind)kind)},
                       {"result", counted_result_name((enum counted_result)r)}),
                count_read(&s->snapshot->counts.commands[kind][r]));
}

void show_protocol_errors(struct sheet *s)
{
    for (int e = 0; e < ERR_COUNT; e++)
        if (protocol_error_name((enum err)e) != NULL)
            put(s, LABELS({"side", "client"}, {"reason", protocol_error_name((enum err)e)}),
                count_read(&s->snapshot->counts.protocol_errors[e]));
    put(s, LABELS({"side", "upstream"}, {"reason", "reply"}), count_read(&s->snapshot->lanes.lost[LOSS_PROTOCOL]));
}

void show_fates(struct sheet *s)
{
    for (int f = 0; f < FATE_COUNT; f++)
        put(s, LABELS({"what", outage_fate_name((enum outage_fate)f)}), count_read(&s->snapshot->counts.fates[f]));
}

void show_read(struct sheet *s)
{
    put(s, LABELS({"side", "client"}), s->snapshot->client_read);
    put(s, LABELS({"side", "upstream"}), s->snapshot->upstream_read);
}

void show_written(struct sheet *s)
{
    put(s, LABELS({"side", "client"}), s->snapshot->client_written);
    put(s, LABELS({"side", "upstream"}), s->snapshot->upstream_written);
}

void show_pauses(struct sheet *s)
{
    put(s, LABELS({"side", "client"}), s->snapshot->client_pauses);
    put(s, LABELS({"side", "upstream"}), s->snapshot->upstream_pauses);
}

void show_limit_commands(struct sheet *s)
{
    for (size_t i = 0; i < own_count() && i < COUNTED_OWN; i++) {
        const char *bar = strchr(own_row(i)->name, '|');
        const char *name = bar != NULL                              ? bar + 1
                           : strcmp(own_row(i)->name, "limit") == 0 ? "unknown"
                                                                    : own_row(i)->name;
        put(s, LABELS({"subcommand", name}, {"result", "ok"}), count_read(&s->snapshot->counts.own[i][0]));
        put(s, LABELS({"subcommand", name}, {"result", "error"}), count_read(&s->snapshot->counts.own[i][1]));
    }
}

/* ---- times ---- */

void show_requests(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.request);
}

void show_upstream_times(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.upstream);
}

void show_overhead(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.overhead);
}
