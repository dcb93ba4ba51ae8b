#include "run/census.h"

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
    counts_add(&s->turns, &front->loop->turns, sizeof s->turns);
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

/*
 * Two listeners with port 0 have one configured text. Names in metrics must differ, so the second
 * gets a number.
 */
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
        name_listener(s, l,
                      l < COUNTED_LISTENERS - 1 ? listening_listen_address(census->listening, l)->listener : "_other");
    for (size_t l = 0; l < n && l < COUNTED_LISTENERS - 1; l++)
        s->listeners[l].is_admin = listening_listen_address(census->listening, l)->is_admin;
    s->n_listeners = n < COUNTED_LISTENERS ? n : COUNTED_LISTENERS;
    for (size_t l = 0; l < s->n_listeners; l++)
        s->listeners[l].open = open_now(&s->counts.listeners[l]);
}

/* ---- the snapshot ---- */

/*
 * Writes why no slot of a cluster is served. Empty while any slot is; census_tell_part then names
 * the other slots.
 */
static void explain_cluster(const struct census *census, const struct cluster *cluster, char why[CENSUS_WHY_ROOM])
{
    char words[CLUSTER_WORDS_ROOM];
    why[0] = '\0';
    if (cluster_words_look(cluster).n_up > 0)
        return;
    (void)cluster_words_print(cluster, words);
    snprintf(why, CENSUS_WHY_ROOM, "upstream %.150s: %.350s", controls_text(census->controls), words);
}

void census_tell_part(const struct census *census, char part[CENSUS_WHY_ROOM])
{
    const struct cluster *cluster = census->controls != NULL ? controls_cluster(census->controls) : NULL;
    char words[CLUSTER_WORDS_ROOM];
    part[0] = '\0';
    if (cluster != NULL && cluster_words_look(cluster).n_up > 0 && !cluster_words_print(cluster, words))
        snprintf(part, CENSUS_WHY_ROOM, "%s", words);
}

/* Writes why the default node cannot be used; "" if the node is up. Other nodes may be down. */
static void explain_upstream(const struct census *census, char why[CENSUS_WHY_ROOM])
{
    if (controls_cluster(census->controls) != NULL) {
        explain_cluster(census, controls_cluster(census->controls), why);
        return;
    }
    const char *text = topology_home(census->topology)->text;
    const char *no_master = controls_why_no_master(census->controls);
    const char *unfit = controls_why(census->controls);
    const struct finder *finder = controls_finder(census->controls, TOPOLOGY_HOME);
    enum node_state state = census_home_state(census);
    uint64_t silence_ns = controls_silence_ns(census->controls, clock_ns());
    why[0] = '\0';
    if (node_state_is_up(state))
        return;
    if (no_master[0] != '\0')
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.200s has no master: %s", text, no_master);
    else if (state == NODE_SILENT && silence_ns == 0)
        /* the node has never answered */
        snprintf(why, CENSUS_WHY_ROOM, "upstream %.400s does not answer", text);
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
    const char *why = controls_why(census->controls);
    if (begins(why, "LOADING") || begins(why, "MASTERDOWN"))
        return "clients are answered by Redis";
    return why[0] != '\0' ? "clients are answered -UPSTREAM unavailable" : "clients wait, at most failover-wait";
}

bool census_is_ready(const struct census *census, char why[CENSUS_WHY_ROOM])
{
    if (census->is_stopping)
        snprintf(why, CENSUS_WHY_ROOM, "stopping");
    else if (census->pool == NULL)
        snprintf(why, CENSUS_WHY_ROOM, "starting");
    else
        explain_upstream(census, why);
    return why[0] == '\0';
}

static void take_upstream(struct snapshot *s, const struct census *census)
{
    snprintf(s->upstream, sizeof s->upstream, "%s", topology_home(census->topology)->text);
    if (census_is_ready(census, s->not_ready))
        census_tell_part(census, s->partly);
    s->is_draining = census->is_stopping;
}

static void take_subjects(struct snapshot *s, const struct census *census)
{
    s->max_subjects = census->config->max_subjects;
    if (census->pool == NULL)
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
    for (int by = 0; census->pool != NULL && by < TOP_BY_COUNT; by++)
        s->tops[by].n = top_heaviest(census->settings->tops, census->config->workers, (enum top_by)by, s->taken_ns,
                                     s->tops[by].rows, SNAPSHOT_TOP);
    if (census->pool != NULL)
        census_take_fullness(s, census);
}

struct snapshot *census_look(const struct census *census)
{
    struct snapshot *s = snapshot_new();
    if (s != NULL)
        s->taken_ns = clock_ns();
    if (s == NULL || !census_take_limits(s, census) || !census_take_named(s, census) || !census_take_nodes(s, census)) {
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
    for (unsigned w = 0; census->pool != NULL && w < census->config->workers; w++)
        take_worker(s, worker_pool_front(census->pool, w));
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
