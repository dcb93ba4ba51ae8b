#include "run/census.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "run/census_limits.h"
#include "run/fullness.h"

#define NS_IN_S 1e9

/* ---- workers ---- */

static void take_worker(struct snapshot *s, const struct front *front)
{
    const struct traffic *traffic = front->loop->traffic;
    counts_add(&s->counts, &front->counts, sizeof s->counts);
    counts_add(&s->turns, &front->loop->turns, sizeof s->turns);
    s->client_read += count_read(&traffic[RANK_CLIENT].read);
    s->client_written += count_read(&traffic[RANK_CLIENT].written);
    s->upstream_read += count_read(&traffic[RANK_LANE].read);
    s->upstream_written += count_read(&traffic[RANK_LANE].written);
    s->client_pauses += count_read(&traffic[RANK_CLIENT].pauses);
    s->upstream_pauses += count_read(&traffic[RANK_LANE].pauses);
}

/* The counters are not read at one moment: more may seem to have been closed than accepted. */
static uint64_t open_now(const struct listener_counts *counts)
{
    uint64_t gone = 0;
    for (int r = 0; r < REJECTED_COUNT; r++)
        gone += rejection_is_early((enum rejection)r) ? count_read(&counts->rejected[r]) : 0;
    for (int r = 0; r < CLOSED_COUNT; r++)
        gone += count_read(&counts->closed[r]);
    uint64_t came = count_read(&counts->accepted);
    return came > gone ? came - gone : 0;
}

/* Port 0 may be configured twice, but names in metrics must differ. */
static void name_listener(struct snapshot *s, size_t l, const char *name)
{
    snprintf(s->listeners[l].name, sizeof s->listeners[l].name, "%s", name);
    for (size_t other = 0; other < l; other++)
        if (strcmp(s->listeners[other].name, name) == 0)
            snprintf(s->listeners[l].name, sizeof s->listeners[l].name, "%.480s#%zu", name, l + 1);
}

static void take_listeners(struct snapshot *s, const struct census *census)
{
    size_t n = listening_count(census->listening);
    for (size_t l = 0; l < n && l < COUNTED_LISTENERS; l++)
        name_listener(s, l, l < COUNTED_LISTENERS - 1 ? listening_entrance(census->listening, l)->listener : "_other");
    for (size_t l = 0; l < n && l < COUNTED_LISTENERS - 1; l++)
        s->listeners[l].is_admin = listening_entrance(census->listening, l)->is_admin;
    s->n_listeners = n < COUNTED_LISTENERS ? n : COUNTED_LISTENERS;
    for (size_t l = 0; l < s->n_listeners; l++)
        s->listeners[l].open = open_now(&s->counts.listeners[l]);
}

/* ---- the rest ---- */

/* Clients' lanes to it that are greeted. */
static uint64_t count_ready(const struct lane_counts *counts)
{
    return count_read(&counts->lists[LIST_SHARED]) + count_read(&counts->lists[LIST_PRIVATE]);
}

/*
 * A control connection that is turned away tells of weir's own rights, or of maxclients: while clients have lanes the
 * node is up. One that cannot connect, or gets no answer, tells that it is away, whatever lanes are still open.
 */
static bool is_connected(const struct census *census, size_t row)
{
    if (census->controls == NULL || node_is_barred(census->topology->rows[row].node))
        return false;
    struct nodes_sum sum = {0};
    for (unsigned w = 0; census->crew != NULL && w < census->config->workers; w++)
        nodes_sum(&crew_front(census->crew, w)->nodes, row, &sum);
    return count_read(&sum.counts.is_down) == 0 &&
           (controls_is_up(census->controls, row) ||
            (count_ready(&sum.counts) > 0 && controls_is_turned_away(census->controls, row)));
}

static enum node_state state_of(const struct census *census, size_t row)
{
    static const enum node_state states[] = {
        [PULSE_WELL] = NODE_UP, [PULSE_BUSY] = NODE_BUSY, [PULSE_HELD] = NODE_PAUSED, [PULSE_SILENT] = NODE_SILENT};
    if (is_connected(census, row))
        return states[controls_pulse(census->controls, row)];
    return node_is_silent(census->topology->rows[row].node) ? NODE_SILENT : NODE_AWAY;
}

/* Why the home node cannot be used; "": it can. What else there is may be away. */
static void explain_upstream(const struct census *census, char why[CENSUS_WHY_ROOM])
{
    const char *text = topology_home(census->topology)->text;
    const char *no_master = controls_why_no_master(census->controls);
    const char *unfit = controls_why(census->controls, TOPOLOGY_HOME);
    const struct finder *finder = controls_finder(census->controls, TOPOLOGY_HOME);
    enum node_state state = state_of(census, TOPOLOGY_HOME);
    uint64_t silence_ns = controls_silence_ns(census->controls, TOPOLOGY_HOME, clock_ns());
    why[0] = '\0';
    if (node_state_is_up(state))
        return;
    if (no_master[0] != '\0')
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.200s has no master: %s", text, no_master);
    else if (state == NODE_SILENT && silence_ns == 0)
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.400s does not answer", text); /* it never has */
    else if (state == NODE_SILENT)
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.400s does not answer (for %.1f s)", text,
                 (double)silence_ns / NS_IN_S);
    else if (unfit[0] != '\0')
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.300s cannot be served: %s", text, unfit);
    else if (finder != NULL && finder_name_error(finder)[0] != '\0')
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.300s is away: its name cannot be resolved: %s", text,
                 finder_name_error(finder));
    else
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.400s is away", text);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *census_clients_get(const struct census *census)
{
    const char *why = controls_why(census->controls, TOPOLOGY_HOME);
    if (begins(why, "LOADING") || begins(why, "MASTERDOWN"))
        return "clients are answered by Redis";
    return why[0] != '\0' ? "clients are answered -UPSTREAM unavailable" : "clients wait, at most failover-wait";
}

bool census_is_ready(const struct census *census, char why[CENSUS_WHY_ROOM])
{
    if (census->is_stopping)
        snprintf(why, CENSUS_WHY_ROOM, "stopping");
    else if (census->crew == NULL)
        snprintf(why, CENSUS_WHY_ROOM, "starting");
    else
        explain_upstream(census, why);
    return why[0] == '\0';
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void take_addresses(struct snapshot_node *to, const struct census *census, size_t row)
{
    static const char *const roles[] = {
        [ROLE_UNKNOWN] = "unknown", [ROLE_MASTER] = "master", [ROLE_REPLICA] = "replica"};
    const struct node *node = census->topology->rows[row].node;
    struct finder_try try;
    snprintf(to->in_use, sizeof to->in_use, "%s", node->address);
    to->role = roles[node_role(node)];
    if (census->controls == NULL)
        return;
    const struct finder *finder = controls_finder(census->controls, row);
    while (finder != NULL && to->n_tries < SNAPSHOT_TRIES && finder_try(finder, to->n_tries, &try)) {
        struct snapshot_try *one = &to->tries[to->n_tries++];
        snprintf(one->address, sizeof one->address, "%s", try.address);
        snprintf(one->why, sizeof one->why, "%s", try.why);
    }
}

static void take_node(struct snapshot *s, const struct census *census, size_t row)
{
    struct snapshot_node *to = &s->nodes[row];
    struct snapshot_health *health = &to->health;
    snprintf(to->address, sizeof to->address, "%s", census->topology->rows[row].node->text);
    snprintf(to->why, sizeof to->why, "%s", census->controls != NULL ? controls_why(census->controls, row) : "");
    to->lacks = atomic_load_explicit(&census->topology->rows[row].node->lacks, memory_order_relaxed);
    take_addresses(to, census, row);
    health->state = state_of(census, row);
    if (health->state != NODE_AWAY)
        health->silence_ns = controls_silence_ns(census->controls, row, s->taken_ns);
    struct nodes_sum sum = {0};
    for (unsigned w = 0; census->crew != NULL && w < census->config->workers; w++)
        nodes_sum(&crew_front(census->crew, w)->nodes, row, &sum);
    counts_add(&to->lanes, &sum.counts, sizeof to->lanes);
    health->oldest_ns = sum.oldest_ns;
}

/* To what is said of all nodes together. Whether the upstream is up is the home node's to say. */
static void add_node(struct snapshot *s, const struct snapshot_node *node)
{
    counts_add(&s->lanes, &node->lanes, sizeof s->lanes);
    s->health.oldest_ns = larger(s->health.oldest_ns, node->health.oldest_ns);
    if (node != &s->nodes[TOPOLOGY_HOME])
        return;
    s->health.state = node->health.state;
    s->health.silence_ns = node->health.silence_ns;
}

/* False: out of memory. */
static bool take_nodes(struct snapshot *s, const struct census *census)
{
    s->nodes = calloc(census->topology->n_rows, sizeof *s->nodes);
    if (s->nodes == NULL)
        return false;
    s->n_nodes = census->topology->n_rows;
    for (size_t row = 0; row < s->n_nodes; row++) {
        take_node(s, census, row);
        add_node(s, &s->nodes[row]);
    }
    return true;
}

static void take_upstream(struct snapshot *s, const struct census *census)
{
    snprintf(s->upstream, sizeof s->upstream, "%s", topology_home(census->topology)->text);
    census_is_ready(census, s->not_ready);
    s->is_draining = census->is_stopping;
}

static void take_subjects(struct snapshot *s, const struct census *census)
{
    s->max_subjects = census->config->max_subjects;
    if (census->crew == NULL)
        return;
    struct subjects *subjects = census->settings->subjects;
    struct subjects *key_subjects = census->settings->key_subjects;
    s->subjects = subjects_count(subjects);
    s->key_subjects = subjects_count(key_subjects);
    s->is_overflowed = subjects_overflows(subjects) + subjects_overflows(key_subjects) > 0;
}

static void take_blocks(struct snapshot *s, const struct census *census)
{
    bool has_been;
    uint16_t id;
    struct snapshot_limit refused = {0};
    s->blocks = governor_blocks(census->governor, &has_been, &id);
    if (has_been)
        census_sum_tallies(&refused, census, id);
    s->blocked_commands = refused.refused;
    s->block_id = has_been ? id : TOP_NO_LIMIT;
}

static void take_reloads(struct snapshot *s, const struct census *census)
{
    const struct reloads *reloads = governor_reloads(census->governor);
    s->reloads = reloads->good;
    s->failed_reloads = reloads->bad;
    s->is_reload_good = !reloads->is_last_bad;
    snprintf(s->reload_error, sizeof s->reload_error, "%s", reloads->last_error);
    s->reloaded_unix_ms = reloads->good > 0 ? reloads->last_good_unix_ms : census->started_unix_ms;
}

static void take_tops(struct snapshot *s, const struct census *census)
{
    for (int by = 0; census->crew != NULL && by < TOP_BY_COUNT; by++)
        s->tops[by].n = top_heaviest(census->settings->tops, census->config->workers, (enum top_by)by, s->taken_ns,
                                     s->tops[by].rows, SNAPSHOT_TOP);
    if (census->crew != NULL)
        fullness_look(s, governor_rules(census->governor), census->settings->subjects, census->settings->key_subjects);
}

struct snapshot *census_look(const struct census *census)
{
    struct snapshot *s = snapshot_new();
    if (s != NULL)
        s->taken_ns = clock_ns();
    if (s == NULL || !census_take_limits(s, census) || !census_take_named(s, census) || !take_nodes(s, census)) {
        snapshot_put(s);
        return NULL;
    }
    const struct rules *rules = governor_rules(census->governor);
    s->unix_ms = clock_unix_ms();
    s->started_unix_ms = census->started_unix_ms;
    s->version = WEIR_VERSION;
    s->libuv = uv_version_string();
    s->hiredis = control_reader_version();
    s->pid = getpid();
    s->name = census->config->name != NULL ? census->config->name : "";
    s->config_path = governor_path(census->governor);
    s->workers = census->config->workers;
    s->is_private = census->config->lanes_private;
    s->is_shadow = policies_is_shadow(rules->policies);
    s->max_clients = rules->max_clients;
    s->max_lanes = room_most(&topology_home(census->topology)->upstream->room);
    s->memory_bytes = memory_used(census->memory);
    s->memory_limit_bytes = rules->memory_limit_bytes;
    s->memory_step = census->memory->step;
    for (unsigned w = 0; census->crew != NULL && w < census->config->workers; w++)
        take_worker(s, crew_front(census->crew, w));
    take_listeners(s, census);
    take_upstream(s, census);
    take_reloads(s, census);
    take_subjects(s, census);
    take_blocks(s, census);
    take_tops(s, census);
    s->n_events = journal_last(census->journal, s->events, SNAPSHOT_EVENTS);
    return s;
}

struct snapshot *census_take(const struct census *census)
{
    struct snapshot *s = census_look(census);
    if (s == NULL || history_note(census->history, s))
        return s;
    snapshot_put(s);
    return NULL;
}
