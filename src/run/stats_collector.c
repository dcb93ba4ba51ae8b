#include "run/stats_collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "run/topology/cluster.h"

#define NS_IN_S 1e9

/* ---- workers ---- */

static void take_worker(struct snapshot *s, const struct front *front)
{
    const struct traffic *traffic = front->loop->traffic;
    counts_add(&s->counts, &front->counts, sizeof s->counts);
    counts_add(&s->iterations, &front->loop->iterations, sizeof s->iterations);
    s->client_read += count_read(&traffic[RANK_CLIENT].read);
    s->client_written += count_read(&traffic[RANK_CLIENT].written);
    s->upstream_read += count_read(&traffic[RANK_LANE].read);
    s->upstream_written += count_read(&traffic[RANK_LANE].written);
    s->client_pauses += count_read(&traffic[RANK_CLIENT].pauses);
    s->upstream_pauses += count_read(&traffic[RANK_LANE].pauses);
}

/*
 * Returns the number of open clients. The counters are not read at one moment: a negative
 * difference counts as 0.
 */
static uint64_t stats_collector_open_now(const struct listener_counts *counts)
{
    uint64_t gone = 0;
    for (int r = 0; r < REJECTED_COUNT; r++)
        gone += rejection_is_early((enum rejection)r) ? count_read(&counts->rejected[r]) : 0;
    for (int r = 0; r < CLOSED_COUNT; r++)
        gone += count_read(&counts->closed[r]);
    uint64_t came = count_read(&counts->accepted);
    return came > gone ? came - gone : 0;
}

/*
 * Two listeners with port 0 may have equal addresses in the configuration. Names in metrics must
 * differ, so the second listener gets a number.
 */
static void name_listener(struct snapshot *s, size_t l, const char *name)
{
    snprintf(s->listeners[l].name, sizeof s->listeners[l].name, "%s", name);
    for (size_t other = 0; other < l; other++)
        if (strcmp(s->listeners[other].name, name) == 0)
            snprintf(s->listeners[l].name, sizeof s->listeners[l].name, "%.480s#%zu", name, l + 1);
}

static void take_listeners(struct snapshot *s, const struct stats_collector *collector)
{
    size_t n = listening_count(collector->listening);
    for (size_t l = 0; l < n && l < COUNTED_LISTENERS; l++)
        name_listener(s, l,
                      l < COUNTED_LISTENERS - 1
                          ? listening_listen_address(collector->listening, l)->listener
                          : "_other");
    for (size_t l = 0; l < n && l < COUNTED_LISTENERS - 1; l++)
        s->listeners[l].is_admin = listening_listen_address(collector->listening, l)->is_admin;
    s->n_listeners = n < COUNTED_LISTENERS ? n : COUNTED_LISTENERS;
    for (size_t l = 0; l < s->n_listeners; l++)
        s->listeners[l].open = stats_collector_open_now(&s->counts.listeners[l]);
}

/* ---- the snapshot ---- */

/*
 * Writes why no slot of a cluster is served. Writes "" while any slot is served;
 * collector_tell_part then names the other slots.
 */
static void explain_cluster(const struct stats_collector *collector, const struct cluster *cluster,
                            char why[NOT_READY_ROOM])
{
    char words[CLUSTER_WORDS_ROOM];
    why[0] = '\0';
    if (cluster_words_look(cluster).n_up > 0)
        return;
    (void)cluster_words_print(cluster, words);
    snprintf(why, NOT_READY_ROOM, "upstream %.150s: %.350s", controls_text(collector->controls),
             words);
}

void collector_tell_part(const struct stats_collector *collector, char part[NOT_READY_ROOM])
{
    const struct cluster *cluster =
        collector->controls != NULL ? controls_cluster(collector->controls) : NULL;
    char words[CLUSTER_WORDS_ROOM];
    part[0] = '\0';
    if (cluster != NULL && cluster_words_look(cluster).n_up > 0 &&
        !cluster_words_print(cluster, words))
        snprintf(part, NOT_READY_ROOM, "%s", words);
}

/* Writes why the default node cannot be used; "" if the node is up. Other nodes may be down. */
static void explain_upstream(const struct stats_collector *collector, char why[NOT_READY_ROOM])
{
    if (controls_cluster(collector->controls) != NULL) {
        explain_cluster(collector, controls_cluster(collector->controls), why);
        return;
    }
    const char *text = topology_default_node(collector->topology)->text;
    const char *no_master = controls_why_no_master(collector->controls);
    const char *unfit = controls_why(collector->controls);
    const struct finder *finder = controls_finder(collector->controls, TOPOLOGY_DEFAULT);
    enum node_state state = collector_default_node_state(collector);
    uint64_t silence_ns = controls_silence_ns(collector->controls, clock_ns());
    why[0] = '\0';
    if (node_state_is_up(state))
        return;
    if (no_master[0] != '\0')
        snprintf(why, NOT_READY_ROOM, "upstream %.200s has no master: %s", text, no_master);
    else if (state == NODE_SILENT && silence_ns == 0)
        /* the node has never answered */
        snprintf(why, NOT_READY_ROOM, "upstream %.400s does not answer", text);
    else if (state == NODE_SILENT)
        snprintf(why, NOT_READY_ROOM, "upstream %.400s does not answer (for %.1f s)", text,
                 (double)silence_ns / NS_IN_S);
    else if (unfit[0] != '\0')
        snprintf(why, NOT_READY_ROOM, "upstream %.300s cannot be served: %s", text, unfit);
    else if (finder != NULL && finder_name_error(finder)[0] != '\0')
        snprintf(why, NOT_READY_ROOM, "upstream %.300s is away: its name cannot be resolved: %s",
                 text, finder_name_error(finder));
    else
        snprintf(why, NOT_READY_ROOM, "upstream %.400s is away", text);
}

static bool stats_collector_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *collector_clients_get(const struct stats_collector *collector)
{
    const char *why = controls_why(collector->controls);
    if (stats_collector_begins(why, "LOADING") || stats_collector_begins(why, "MASTERDOWN"))
        return "clients are answered by Redis";
    return why[0] != '\0' ? "clients are answered -UPSTREAM unavailable"
                          : "clients wait, at most failover-wait";
}

bool collector_is_ready(const struct stats_collector *collector, char why[NOT_READY_ROOM])
{
    if (collector->is_stopping)
        snprintf(why, NOT_READY_ROOM, "stopping");
    else if (collector->pool == NULL)
        snprintf(why, NOT_READY_ROOM, "starting");
    else
        explain_upstream(collector, why);
    return why[0] == '\0';
}

static void take_upstream(struct snapshot *s, const struct stats_collector *collector)
{
    snprintf(s->upstream, sizeof s->upstream, "%s",
             topology_default_node(collector->topology)->text);
    if (collector_is_ready(collector, s->not_ready))
        collector_tell_part(collector, s->partly);
    s->is_draining = collector->is_stopping;
}

static void take_subjects(struct snapshot *s, const struct stats_collector *collector)
{
    s->max_subjects = collector->config->max_subjects;
    if (collector->pool == NULL)
        return;
    struct subjects *subjects = collector->settings->subjects;
    struct subjects *key_subjects = collector->settings->key_subjects;
    s->subjects = subjects_count(subjects);
    s->key_subjects = subjects_count(key_subjects);
    s->is_overflowed = subjects_overflows(subjects) + subjects_overflows(key_subjects) > 0;
}

static void take_blocks(struct snapshot *s, const struct stats_collector *collector)
{
    bool has_been;
    uint16_t id;
    struct snapshot_limit refused = {0};
    s->blocks = config_manager_blocks(collector->manager, &has_been, &id);
    if (has_been)
        collector_sum_counters(&refused, collector, id);
    s->blocked_commands = refused.refused;
    s->block_id = has_been ? id : TOP_NO_LIMIT;
}

static void take_reloads(struct snapshot *s, const struct stats_collector *collector)
{
    const struct reloads *reloads = config_manager_reloads(collector->manager);
    s->reloads = reloads->good;
    s->failed_reloads = reloads->bad;
    s->is_reload_good = !reloads->is_last_bad;
    snprintf(s->reload_error, sizeof s->reload_error, "%s", reloads->last_error);
    s->reloaded_unix_ms =
        reloads->good > 0 ? reloads->last_good_unix_ms : collector->started_unix_ms;
}

static void take_tops(struct snapshot *s, const struct stats_collector *collector)
{
    for (int by = 0; collector->pool != NULL && by < TOP_BY_COUNT; by++)
        s->tops[by].n = top_heaviest(collector->settings->tops, collector->config->workers,
                                     (enum top_by)by, s->taken_ns, s->tops[by].rows, SNAPSHOT_TOP);
    if (collector->pool != NULL)
        collector_take_usage(s, collector);
}

struct snapshot *collector_look(const struct stats_collector *collector)
{
    struct snapshot *s = snapshot_new();
    if (s != NULL)
        s->taken_ns = clock_ns();
    if (s == NULL || !collector_take_limits(s, collector) || !collector_take_named(s, collector) ||
        !collector_take_nodes(s, collector)) {
        snapshot_put(s);
        return NULL;
    }
    const struct rules *rules = config_manager_rules(collector->manager);
    s->unix_ms = clock_unix_ms();
    s->started_unix_ms = collector->started_unix_ms;
    s->version = WEIR_VERSION;
    s->libuv = uv_version_string();
    s->hiredis = control_reader_version();
    s->pid = getpid();
    s->name = collector->config->name != NULL ? collector->config->name : "";
    s->config_path = config_manager_path(collector->manager);
    s->workers = collector->config->workers;
    s->is_private = collector->config->lanes_private;
    s->is_shadow = policies_is_shadow(rules->policies);
    s->max_clients = rules->max_clients;
    s->max_lanes = room_most(&topology_default_node(collector->topology)->upstream->room);
    s->memory_bytes = memory_used(collector->memory);
    s->memory_limit_bytes = rules->memory_limit_bytes;
    s->memory_step = collector->memory->step;
    for (unsigned w = 0; collector->pool != NULL && w < collector->config->workers; w++)
        take_worker(s, worker_pool_front(collector->pool, w));
    take_listeners(s, collector);
    take_upstream(s, collector);
    take_reloads(s, collector);
    take_subjects(s, collector);
    take_blocks(s, collector);
    take_tops(s, collector);
    s->n_events = journal_last(collector->journal, s->events, SNAPSHOT_EVENTS);
    return s;
}

struct snapshot *collector_take(const struct stats_collector *collector)
{
    struct snapshot *s = collector_look(collector);
    if (s == NULL || history_note(collector->history, s))
        return s;
    snapshot_put(s);
    return NULL;
}
