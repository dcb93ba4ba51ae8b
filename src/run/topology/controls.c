#include "run/topology/controls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/topology/controls_state.h"
#include "run/topology/cost_poll.h"
#include "run/topology/replica_poll.h"

#define POLL_NS (250 * NS_PER_MS) /* interval of role questions without a good master */
/* with a good master: one role question in this many intervals (chosen) */
#define POLLS_CALM 4

/* ---- the topology ---- */

static struct node *new_nobody(const struct controls *controls, const struct node *before)
{
    const struct endpoint nowhere = {.length = 0};
    return node_new(&(struct node_origin){.upstream = controls->upstream,
                                          .text = controls->text,
                                          .address = "",
                                          .endpoint = nowhere,
                                          .before = before});
}

struct node *controls_default_node(const struct controls *controls,
                                   const struct member *default_node)
{
    struct node *now = topology_default_node(controls->topology);
    if (default_node != NULL)
        return node_get(finder_node(default_node->finder));
    return controls_default(controls) == NULL ? node_get(now) : new_nobody(controls, now);
}

/*
 * Limits lanes to the smallest maxclients of all rows: it is not yet known to which node a lane
 * will lead. Servers without a row do not count.
 */
void controls_sum_maxclients(const struct controls *controls)
{
    uint32_t least = 0;
    for (size_t i = 0; i < controls->topology->n_rows; i++) {
        uint32_t own = atomic_load_explicit(&controls->topology->rows[i].node->maxclients,
                                            memory_order_relaxed);
        least = least == 0 || (own != 0 && own < least) ? own : least;
    }
    if (least > 0)
        atomic_store_explicit(&controls->upstream->room.maxclients, least, memory_order_relaxed);
}

void controls_set_topology(struct controls *controls, struct topology *topology,
                           struct member **rows)
{
    free(controls->rows);
    topology_put(controls->topology);
    controls->rows = rows;
    controls->topology = topology;
    controls_sum_maxclients(controls);
    if (controls->is_started)
        controls->ops->on_topology(controls->arg);
}

void controls_hand_table(const struct controls *controls, const struct member *member)
{
    if (member->table != NULL)
        controls->ops->on_table(controls->arg, command_table_get(member->table));
}

void controls_settle(struct controls *controls)
{
    if (controls->is_settled)
        return;
    controls->is_settled = true;
    controls->ops->on_settled(controls->arg);
}

void controls_drop_leaving(struct controls *controls)
{
    struct members *members = &controls->members;
    for (size_t i = members->n; i > 0; i--) {
        struct member *member = members->all[i - 1];
        if (!member->is_leaving)
            continue;
        if (controls->cluster != NULL)
            cluster_forget(controls->cluster, member);
        members_drop(members, member);
    }
}

static void controls_on_choose(uv_timer_t *timer)
{
    struct controls *controls = timer->data;
    if (controls->cluster != NULL)
        controls_follow_cluster(controls);
    else
        controls_choose_default_node(controls);
}

void controls_choose_soon(struct controls *controls)
{
    uv_timer_start(&controls->timers[CHOOSE], controls_on_choose, 0, 0);
}

static bool has_several(const struct controls *controls)
{
    return controls->is_replicated || controls->cluster != NULL;
}

static void on_poll(uv_timer_t *timer)
{
    struct controls *controls = timer->data;
    if (controls->cluster != NULL) {
        controls_tell_shards(controls, clock_ns());
        return;
    }
    controls->n_polls++;
    if (controls->choice.made.pace == PACE_HURRY || controls->n_polls % POLLS_CALM == 0)
        members_ask_roles(&controls->members);
    if (!controls->is_settled)
        controls_choose_default_node(controls);
    controls_tell_story(controls, clock_ns());
}

/* ---- callbacks of members and sentinels ---- */

static struct controls *controls_of(const struct member *member)
{
    return member->members->arg;
}

static void on_node(void *arg)
{
    struct member *member = arg;
    struct controls *controls = controls_of(member);
    if (controls->cluster != NULL)
        cluster_note_member(controls->cluster, member);
    if (has_several(controls))
        controls_choose_soon(controls);
    else
        controls_publish_default_node(controls, member);
}

static void controls_on_table(void *arg, struct command_table *table)
{
    struct member *member = arg;
    member_take_table(member, table);
    if (member == controls_default(controls_of(member)))
        controls_hand_table(controls_of(member), member);
}

static void controls_on_word(void *arg)
{
    struct member *member = arg;
    struct controls *controls = controls_of(member);
    member_note_word(member);
    if (controls->cluster != NULL)
        cluster_note_member(controls->cluster, member);
    if (has_several(controls))
        controls_choose_soon(controls);
    else if (member->is_settled)
        controls_settle(controls);
}

static void controls_on_settled(void *arg)
{
    struct member *member = arg;
    member->is_settled = true;
    controls_on_word(member);
}

/*
 * Logs a rejection. While there is a master, a replica that loads its data or has lost its master
 * is no error.
 */
static void controls_on_rejected(void *arg, const char *why)
{
    const struct member *member = arg, *default_node = controls_default(controls_of(member));
    if (member == default_node || default_node == NULL || controls_of(member)->cluster != NULL)
        log_error("upstream %s cannot be served: %s", member->key, why);
    else
        log_info("upstream %s, not the master, cannot be served: %s", member->key, why);
}

static void controls_on_maxclients(void *arg)
{
    controls_sum_maxclients(controls_of(arg));
}

void controls_tell(void *arg, enum log_level level, const char *about, const char *line)
{
    const struct controls *controls = arg;
    controls->ops->on_news(controls->arg, level, about, line);
}

static void controls_on_news(void *arg, enum log_level level, const char *about, const char *line)
{
    controls_tell(controls_of(arg), level, about, line);
}

static const struct finder_ops member_ops = {
    .on_node = on_node,
    .on_table = controls_on_table,
    .on_word = controls_on_word,
    .on_settled = controls_on_settled,
    .on_rejected = controls_on_rejected,
    .on_maxclients = controls_on_maxclients,
    .on_news = controls_on_news,
};

static void on_claims(void *arg)
{
    controls_choose_soon(arg);
}

static const struct sentinels_ops sentinels_ops = {.on_claims = on_claims,
                                                   .on_news = controls_tell};

/* ---- the life of the controls ---- */

static void on_asked(uv_async_t *async)
{
    const struct controls *controls = async->data;
    bool is_wanted =
        controls->cluster != NULL &&
        atomic_load_explicit(&controls->upstream->is_topology_asked, memory_order_acquire);
    for (size_t i = 0; controls->cluster != NULL && i < controls->members.n && !is_wanted; i++)
        is_wanted = node_is_asked(finder_node(controls->members.all[i]->finder));
    members_look(&controls->members);
    if (is_wanted)
        cluster_want(controls->cluster);
}

static void print_sources(char *out, size_t room, const struct sources *sources)
{
    size_t n = 0;
    if (sources->form == SOURCES_SENTINEL)
        n += (size_t)snprintf(out, room, "sentinel:%s@", sources->master_name);
    else if (sources->form == SOURCES_CLUSTER)
        n += (size_t)snprintf(out, room, "cluster:");
    for (size_t i = 0; i < sources->n && n < room; i++) {
        char text[ADDRESS_TEXT];
        address_print(&sources->addresses[i], text, sizeof text);
        n += (size_t)snprintf(out + n, room - n, "%s%s", i > 0 ? ", " : "", text);
    }
}

static void init_handles(struct controls *controls)
{
    uv_async_init(&controls->loop->uv, &controls->asked, on_asked);
    controls->asked.data = controls;
    for (unsigned i = 0; i < CONTROLS_TIMERS; i++) {
        uv_timer_init(&controls->loop->uv, &controls->timers[i]);
        controls->timers[i].data = controls;
    }
    controls->n_handles = 1 + CONTROLS_TIMERS;
    upstream_set_asked(controls->upstream, &controls->asked);
}

static void open_sentinels(struct controls *controls, const struct controls_settings *settings)
{
    const struct sentinels_settings sentinels = {
        .upstream = controls->upstream,
        .master_name = settings->sources->master_name,
        .addresses = settings->sources->addresses,
        .n_addresses = settings->sources->n,
        .dialling = settings->finder.dialling,
        .resolve_ns = settings->finder.resolve_ns,
        .user = settings->sentinel_user,
        .password_path = settings->sentinel_password_path,
        .asks_replicas = controls->upstream->reads.reads != READS_MASTER,
    };
    controls->sentinels = sentinels_open(controls->loop, &sentinels, &sentinels_ops, controls);
}

static void add_sources(struct controls *controls, const struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        char key[ADDRESS_TEXT];
        address_print(&sources->addresses[i], key, sizeof key);
        (void)members_add(&controls->members, key, &sources->addresses[i]);
    }
}

struct controls *controls_open(struct loop *loop, const struct controls_settings *settings,
                               const struct controls_ops *ops, void *arg)
{
    struct controls *controls = mem_zalloc(1, sizeof *controls);
    struct finder_settings finder = settings->finder;
    controls->loop = loop;
    controls->upstream = finder.upstream;
    controls->ops = ops;
    controls->arg = arg;
    controls->is_replicated = sources_are_replicated(settings->sources);
    controls->choice.form =
        settings->sources->form == SOURCES_SENTINEL ? MASTERSHIP_SENTINELS : MASTERSHIP_LIST;
    print_sources(controls->text, sizeof controls->text, settings->sources);
    controls->rows = mem_zalloc(1, sizeof(struct member *));
    controls->kin = new_nobody(controls, NULL);
    controls->topology = topology_new(&controls->kin, 1);
    bool is_cluster = settings->sources->form == SOURCES_CLUSTER;
    finder.kind = controls->is_replicated || is_cluster ? FINDER_MEMBER : FINDER_ALONE;
    finder.kin = controls->kin;
    members_init(&controls->members, loop, &finder, &member_ops, controls);
    if (settings->sources->form == SOURCES_SENTINEL)
        open_sentinels(controls, settings);
    else
        add_sources(controls, settings->sources);
    if (is_cluster) {
        controls_open_cluster(controls);
        controls_add_nodes(controls, settings->nodes != NULL ? settings->nodes : "");
    } else if (!controls->is_replicated)
        controls_publish_default_node(controls, controls->members.all[0]);
    init_handles(controls);
    controls->costs = cost_poll_open(controls);
    return controls;
}

void controls_start(struct controls *controls)
{
    uint64_t every_ms = upstream_time(controls->upstream, POLL_NS) / NS_PER_MS;
    controls->is_started = true;
    members_start(&controls->members);
    if (controls->sentinels != NULL)
        sentinels_start(controls->sentinels);
    if (controls->cluster != NULL)
        cluster_start(controls->cluster);
    if (controls->upstream->reads.reads != READS_MASTER)
        controls->poll = replica_poll_open(controls);
    if (has_several(controls))
        uv_timer_start(&controls->timers[POLL], on_poll, every_ms, every_ms > 0 ? every_ms : 1);
}

struct topology *controls_topology(const struct controls *controls)
{
    return topology_get(controls->topology);
}

void controls_probe(struct controls *controls)
{
    members_probe(&controls->members);
}

void controls_set_password(struct controls *controls, const struct credentials *credentials)
{
    members_set_password(&controls->members, credentials);
    if (controls->sentinels != NULL)
        sentinels_read_password(controls->sentinels);
}

void controls_ask_costs(const struct controls *controls, struct command_table *table)
{
    cost_poll_set_table(controls->costs, table);
}

/* ---- the state of a row ---- */

const struct finder *controls_finder(const struct controls *controls, size_t row)
{
    return controls->rows[row] != NULL ? controls->rows[row]->finder : NULL;
}

/* Returns the control lane of the default node; NULL: the node has no address. */
static const struct control *default_control(const struct controls *controls)
{
    const struct finder *finder = controls_finder(controls, TOPOLOGY_DEFAULT);
    return finder != NULL ? finder_control(finder) : NULL;
}

bool controls_is_up(const struct controls *controls)
{
    const struct control *control = default_control(controls);
    return control != NULL && control_is_up(control);
}

const char *controls_why(const struct controls *controls)
{
    const struct control *control = default_control(controls);
    return control != NULL ? control_why(control) : "";
}

uint64_t controls_silence_ns(const struct controls *controls, uint64_t now_ns)
{
    const struct control *control = default_control(controls);
    return control != NULL ? control_silence_ns(control, now_ns) : 0;
}

bool controls_are_replicated(const struct controls *controls)
{
    return controls->is_replicated;
}

const char *controls_text(const struct controls *controls)
{
    return controls->cluster != NULL ? controls->text
                                     : topology_default_node(controls->topology)->text;
}

const struct cluster *controls_cluster(const struct controls *controls)
{
    return controls->cluster;
}

static size_t controls_row_of(const struct controls *controls, const struct member *member)
{
    for (size_t row = 0; row < controls->topology->n_rows; row++)
        if (controls->rows[row] == member)
            return row;
    return CONTROLS_NO_ROW;
}

bool controls_server(const struct controls *controls, size_t i, struct controls_server *out)
{
    if (i >= controls->members.n)
        return false;
    const struct member *member = controls->members.all[i];
    *out = (struct controls_server){
        .key = member->key,
        .finder = member->finder,
        .row = controls_row_of(controls, member),
        .epoch = member == controls_default(controls) ? controls->choice.made.epoch : 0,
        .changed_ns = member->changed_ns};
    return true;
}

const char *controls_why_no_master(const struct controls *controls)
{
    return controls->choice.text;
}

static void controls_on_closed(uv_handle_t *handle)
{
    struct controls *controls = handle->data;
    if (--controls->n_handles > 0)
        return;
    topology_put(controls->topology);
    node_put(controls->kin);
    free(controls->rows);
    free(controls);
}

/* Each part that is closed here closes asynchronously, frees itself, and calls back no more. */
void controls_close(struct controls *controls)
{
    upstream_set_asked(controls->upstream, NULL);
    if (controls->poll != NULL)
        replica_poll_close(controls->poll);
    cost_poll_close(controls->costs);
    members_fini(&controls->members);
    if (controls->sentinels != NULL)
        sentinels_close(controls->sentinels);
    if (controls->cluster != NULL)
        cluster_close(controls->cluster);
    uv_close((uv_handle_t *)&controls->asked, controls_on_closed);
    for (unsigned i = 0; i < CONTROLS_TIMERS; i++)
        uv_close((uv_handle_t *)&controls->timers[i], controls_on_closed);
}
