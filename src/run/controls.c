#include "run/controls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/choice.h"
#include "run/cluster_rows.h"
#include "run/cluster_words.h"
#include "run/members.h"
#include "run/replica_poll.h"
#include "run/sentinel_view.h"
#include "run/sentinels.h"

#define POLL_NS (250 * NS_PER_MS) /* in a hurry servers are asked for their roles so often, ... */
#define POLLS_CALM 4              /* ... else every so many times (chosen) */
#define ASK_NS (50 * NS_PER_MS)   /* between two questions beside these: an answer may be the reason for the next */
#define STORY_NS NS_PER_S         /* a failover is told so long after it, when commands that waited have been sent */
#define SOURCES_TEXT 1024

enum timer { CHOOSE, POLL, TIMERS };

struct controls {
    uv_async_t asked; /* node_ask of some node */
    uv_timer_t timers[TIMERS];
    unsigned n_handles; /* not closed in full */
    struct loop *loop;
    struct upstream *upstream;
    const struct controls_ops *ops;
    void *arg;
    bool is_replicated;      /* there may be several servers, of which one at a time is the master */
    char text[SOURCES_TEXT]; /* the servers as configured, for the log */
    struct members members;
    struct sentinels *sentinels;           /* NULL: the servers are configured */
    struct cluster *cluster;               /* NULL: the upstream is none */
    char cluster_text[CLUSTER_WORDS_ROOM]; /* which part of its slots is served, as people were told last */
    uint16_t told[SLOT_COUNT]; /* of a cluster: the row of each slot, as the view has been told of it last */
    struct node *kin;          /* all nodes share its contention */
    struct topology *topology; /* one reference */
    struct member **rows;      /* of the topology's nodes; of the home NULL while there is no master; heap */
    unsigned n_polls;
    uint64_t asked_ns; /* when a member was asked last for its role beside the polls */
    struct choice choice;
    struct failover_story story;
    struct replica_poll *poll; /* NULL: no replica is read from */
    bool is_started, is_settled;
};

static struct member *home_of(const struct controls *controls)
{
    return controls->rows[TOPOLOGY_HOME];
}

/* ---- the topology ---- */

static struct node *new_nobody(const struct controls *controls, const struct node *before)
{
    const struct endpoint nowhere = {.length = 0};
    return node_new(&(struct node_origin){
        .upstream = controls->upstream, .text = controls->text, .address = "", .endpoint = nowhere, .before = before});
}

/* The node without an address stays the same while there is no master. */
static struct node *home_node(const struct controls *controls, const struct member *home)
{
    struct node *now = topology_home(controls->topology);
    if (home != NULL)
        return node_get(finder_node(home->finder));
    return home_of(controls) == NULL ? node_get(now) : new_nobody(controls, now);
}

static bool is_same_topology(const struct controls *controls, const struct topology *topology)
{
    if (controls->topology->n_rows != topology->n_rows)
        return false;
    for (size_t i = 0; i < topology->n_rows; i++)
        if (controls->topology->rows[i].node != topology->rows[i].node)
            return false;
    return true;
}

/*
 * As long as it is not known where lanes will lead, there may be no more than the node takes that takes fewest. What a
 * server without a row takes does not matter.
 */
static void sum_maxclients(const struct controls *controls)
{
    uint32_t least = 0;
    for (size_t i = 0; i < controls->topology->n_rows; i++) {
        uint32_t own = atomic_load_explicit(&controls->topology->rows[i].node->maxclients, memory_order_relaxed);
        least = least == 0 || (own != 0 && own < least) ? own : least;
    }
    if (least > 0)
        atomic_store_explicit(&controls->upstream->room.maxclients, least, memory_order_relaxed);
}

static bool reads_replicas(const struct upstream *upstream)
{
    return upstream->reads.reads != READS_MASTER;
}

/* True if clients may read there, as far as its role goes. */
static bool is_replica(const struct controls *controls, const struct member *member, const struct member *home)
{
    const struct node *node = finder_node(member->finder);
    return reads_replicas(controls->upstream) && member != home && !member->is_leaving && node_has_address(node) &&
           !node_is_demoted(node) && node_role(node) == ROLE_REPLICA;
}

/* `rows` and the topology are controls' from now on. */
static void set_topology(struct controls *controls, struct topology *topology, struct member **rows)
{
    free(controls->rows);
    topology_put(controls->topology);
    controls->rows = rows;
    controls->topology = topology;
    sum_maxclients(controls);
    if (controls->is_started)
        controls->ops->on_topology(controls->arg);
}

/* The home is this member from now on, or none. Its node, or other rows, may be others. */
static void publish(struct controls *controls, struct member *home)
{
    const struct members *members = &controls->members;
    struct member **rows = mem_zalloc(members->n + 1, sizeof(struct member *));
    struct node **nodes = mem_zalloc(members->n + 1, sizeof(struct node *));
    struct node *first = home_node(controls, home);
    size_t n = 1;
    rows[TOPOLOGY_HOME] = home;
    nodes[TOPOLOGY_HOME] = first;
    for (size_t i = 0; i < members->n; i++)
        if (is_replica(controls, members->all[i], home)) {
            rows[n] = members->all[i];
            nodes[n++] = finder_node(members->all[i]->finder);
        }
    struct topology *topology = topology_new(nodes, n);
    free(nodes);
    node_put(first);
    if (!is_same_topology(controls, topology)) {
        set_topology(controls, topology, rows);
        return;
    }
    free(controls->rows);
    controls->rows = rows;
    topology_put(topology);
}

/* ---- which member is the master ---- */

static void on_choose(uv_timer_t *timer);

static void hand_table(const struct controls *controls, const struct member *member)
{
    if (member->table != NULL)
        controls->ops->on_table(controls->arg, command_table_get(member->table));
}

/* Nothing is sent to the old master any more, whatever it says. */
static void change_home(struct controls *controls, struct member *home)
{
    struct member *before = home_of(controls);
    struct node *node = node_get(topology_home(controls->topology));
    if (before != NULL)
        node_demote(node);
    publish(controls, home);
    if (before != NULL && finder_node(before->finder) == node)
        finder_give_up(before->finder);
    node_put(node);
    if (home != NULL)
        hand_table(controls, home);
}

static void tell_home(const struct controls *controls)
{
    char line[SOURCES_TEXT + CHOICE_TEXT + ADDRESS_TEXT];
    const struct member *home = home_of(controls);
    if (home != NULL)
        snprintf(line, sizeof line, "upstream %s is the master", home->key);
    else
        snprintf(line, sizeof line, "upstream %s has no master: %s", controls->text, controls->choice.text);
    controls->ops->on_news(controls->arg, home != NULL ? LOG_INFO : LOG_WARN, line, line);
}

static void settle(struct controls *controls)
{
    if (controls->is_settled)
        return;
    controls->is_settled = true;
    controls->ops->on_settled(controls->arg);
}

/* True if every server and sentinel that was configured has been heard, or has failed once. */
static bool are_heard(const struct controls *controls)
{
    return members_are_settled(&controls->members) &&
           (controls->sentinels == NULL || sentinels_are_settled(controls->sentinels));
}

static void ask_beside_polls(struct controls *controls, uint64_t now_ns)
{
    const struct member *asked = controls->choice.asked;
    if (asked == NULL || now_ns < controls->asked_ns + ASK_NS)
        return;
    controls->asked_ns = now_ns;
    finder_ask_role(asked->finder);
}

static void drop_leaving(struct controls *controls)
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

static void make_choice(struct controls *controls, uint64_t now_ns)
{
    struct sentinel_view view;
    struct members *members = &controls->members;
    if (controls->sentinels == NULL) {
        const struct choice_claims none = {NULL, 0, 0};
        choice_make(&controls->choice, members, &none, now_ns);
        return;
    }
    sentinel_view_look(&view, controls->sentinels);
    sentinel_view_admit(&view, members);
    const struct choice_claims claims = sentinel_view_claims(&view);
    choice_make(&controls->choice, members, &claims, now_ns);
    if (controls->choice.why == MASTERSHIP_NO_CLAIM)
        (void)sentinel_view_explain(&view, controls->choice.text, sizeof controls->choice.text);
    sentinel_view_dismiss(&view, members, &controls->choice);
    sentinels_set_pace(controls->sentinels, controls->choice.pace);
}

/* A master with a lost connection is missed, though nothing is known to be in its place. */
static void follow_story(struct controls *controls, const struct member *before, uint64_t now_ns)
{
    const struct member *home = home_of(controls);
    struct finder_word word = {.lost_ns = 0};
    if (home != NULL)
        word = finder_word(home->finder);
    if (before != NULL && before != home)
        failover_story_miss(&controls->story, before->key, now_ns);
    else if (home != NULL && word.lost_ns != 0)
        failover_story_miss(&controls->story, home->key, word.lost_ns);
    if (home != NULL && word.lost_ns == 0)
        failover_story_find(&controls->story, home->key, now_ns);
}

static void tell_story(struct controls *controls, uint64_t now_ns)
{
    char line[FAILOVER_STORY_ROOM];
    struct fates fates = {{0}};
    uint64_t due_ns = failover_story_due_ns(&controls->story, upstream_time(controls->upstream, STORY_NS));
    controls->ops->sum_fates(controls->arg, &fates);
    if (due_ns != 0 && now_ns >= due_ns && failover_story_tell(&controls->story, &fates, line))
        controls->ops->on_news(controls->arg, LOG_WARN, line, line);
    failover_story_rest(&controls->story, &fates);
}

static void choose(struct controls *controls)
{
    const struct choice *choice = &controls->choice;
    struct member *before = home_of(controls);
    enum mastership_why why = choice->why;
    uint64_t now_ns = clock_ns();
    make_choice(controls, now_ns);
    if (choice->home != before)
        change_home(controls, choice->home);
    else
        publish(controls, before);
    ask_beside_polls(controls, now_ns);
    follow_story(controls, before, now_ns);
    drop_leaving(controls);
    bool is_news = choice->home != before || (choice->home == NULL && choice->why != why);
    if (is_news && (controls->is_settled || are_heard(controls)))
        tell_home(controls);
    if (choice->again_ns > now_ns)
        uv_timer_start(&controls->timers[CHOOSE], on_choose, (choice->again_ns - now_ns) / NS_PER_MS + 1, 0);
    if (choice->home != NULL ? choice->home->is_settled : are_heard(controls))
        settle(controls);
}

static void follow_cluster(struct controls *controls);

static void on_choose(uv_timer_t *timer)
{
    struct controls *controls = timer->data;
    if (controls->cluster != NULL)
        follow_cluster(controls);
    else
        choose(controls);
}

/* Later: within a call of its finder a member is not to be given up. */
static void choose_soon(struct controls *controls)
{
    uv_timer_start(&controls->timers[CHOOSE], on_choose, 0, 0);
}

/* ---- a cluster ---- */

/* Nothing comes from a node any more in whose place there is another: clients that wait there are closed. */
static void demote_lost(struct controls *controls, const struct topology *topology)
{
    for (size_t i = 0; i < controls->topology->n_rows; i++) {
        struct member *member = controls->rows[i];
        struct node *node = controls->topology->rows[i].node;
        bool is_kept = false;
        for (size_t j = 0; j < topology->n_rows && !is_kept; j++)
            is_kept = topology->rows[j].node == node;
        if (is_kept || member == NULL || !finder_word(member->finder).is_lost)
            continue;
        node_demote(node);
        if (finder_node(member->finder) == node && !member->is_leaving)
            finder_give_up(member->finder);
    }
}

static void tell_changes(const struct controls *controls, const struct topology *now)
{
    const struct topology *before = controls->topology;
    char what[CLUSTER_WORDS_ROOM], line[CLUSTER_WORDS_ROOM + SOURCES_TEXT + 16];
    for (size_t i = 0; before->slots != NULL && i < before->n_masters; i++)
        if (cluster_words_print_change(before, now, i, what)) {
            snprintf(line, sizeof line, "upstream %s: %s", controls->text, what);
            controls->ops->on_news(controls->arg, LOG_WARN, line, line);
        }
}

/* Once per change. */
static void tell_service(struct controls *controls)
{
    char text[CLUSTER_WORDS_ROOM], line[CLUSTER_WORDS_ROOM + SOURCES_TEXT + 16];
    bool is_whole = cluster_words_print(controls->cluster, text);
    if (strcmp(text, controls->cluster_text) == 0 || !cluster_is_settled(controls->cluster))
        return;
    snprintf(controls->cluster_text, sizeof controls->cluster_text, "%s", text);
    snprintf(line, sizeof line, "upstream %s: %s", controls->text, text);
    controls->ops->on_news(controls->arg, is_whole ? LOG_INFO : LOG_WARN, line, line);
}

/* The rows are handed over. Without a master the home is a node without an address. */
static void publish_rows(struct controls *controls, struct cluster_rows *rows)
{
    struct node *nobody = NULL;
    if (rows->n == 0) {
        nobody = home_node(controls, NULL);
        rows->rows[0] = (struct topology_row){.node = nobody, .master = 0};
        rows->n = rows->n_masters = 1;
    }
    if (!cluster_rows_are_same(rows, controls->topology)) {
        struct topology *topology = topology_new_cluster(rows->rows, rows->n, rows->n_masters, rows->slots);
        for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
            controls->told[slot] = slot_map_row(topology->slots, slot);
        demote_lost(controls, topology);
        tell_changes(controls, topology);
        set_topology(controls, topology, rows->members);
        rows->members = NULL;
        rows->slots = NULL;
    }
    node_put(nobody);
}

/* Members have been heard, or lost. */
static void follow_cluster(struct controls *controls)
{
    struct cluster_rows rows;
    struct member *before = home_of(controls);
    cluster_sort_members(controls->cluster, controls->topology);
    cluster_rows_make(&rows, controls->cluster, before, controls->topology);
    publish_rows(controls, &rows);
    cluster_rows_fini(&rows);
    cluster_sort_members(controls->cluster, controls->topology);
    drop_leaving(controls);
    if (home_of(controls) != NULL && home_of(controls) != before)
        hand_table(controls, home_of(controls));
    if (!controls->is_started)
        return;
    tell_service(controls);
    if (cluster_is_settled(controls->cluster))
        settle(controls);
}

static void on_question(void *arg)
{
    struct controls *controls = arg;
    (void)cluster_rows_note_redirects(controls->cluster, controls->topology, controls->told);
}

static void on_answer(void *arg)
{
    choose_soon(arg);
}

static void on_news(void *arg, enum log_level level, const char *about, const char *line);

static const struct cluster_ops cluster_ops = {.on_question = on_question, .on_answer = on_answer, .on_news = on_news};

static bool has_several(const struct controls *controls)
{
    return controls->is_replicated || controls->cluster != NULL;
}

static void on_poll(uv_timer_t *timer)
{
    struct controls *controls = timer->data;
    controls->n_polls++;
    if (controls->choice.pace == PACE_HURRY || controls->n_polls % POLLS_CALM == 0)
        members_ask_roles(&controls->members);
    if (!controls->is_settled)
        choose(controls);
    tell_story(controls, clock_ns());
}

/* ---- what members and sentinels say ---- */

static void on_node(void *arg, struct member *member)
{
    struct controls *controls = arg;
    if (controls->cluster != NULL)
        cluster_note_member(controls->cluster, member);
    if (has_several(controls))
        choose_soon(controls);
    else
        publish(controls, member);
}

static void on_table(void *arg, struct member *member)
{
    const struct controls *controls = arg;
    if (member == home_of(controls))
        hand_table(controls, member);
}

static void on_word(void *arg, struct member *member)
{
    struct controls *controls = arg;
    if (controls->cluster != NULL)
        cluster_note_member(controls->cluster, member);
    if (has_several(controls))
        choose_soon(controls);
    else if (member->is_settled)
        settle(controls);
}

/* A replica that loads its data, or has lost its master, is no mistake while there is a master. */
static void on_rejected(void *arg, struct member *member, const char *why)
{
    const struct controls *controls = arg;
    if (member == home_of(controls) || home_of(controls) == NULL || controls->cluster != NULL)
        log_error("upstream %s cannot be served: %s", member->key, why);
    else
        log_info("upstream %s, which is not the master, cannot be served: %s", member->key, why);
}

static void on_maxclients(void *arg)
{
    sum_maxclients(arg);
}

static void on_news(void *arg, enum log_level level, const char *about, const char *line)
{
    const struct controls *controls = arg;
    controls->ops->on_news(controls->arg, level, about, line);
}

static const struct members_ops members_ops = {
    .on_node = on_node,
    .on_table = on_table,
    .on_word = on_word,
    .on_rejected = on_rejected,
    .on_maxclients = on_maxclients,
    .on_news = on_news,
};

static void on_claims(void *arg)
{
    choose_soon(arg);
}

static const struct sentinels_ops sentinels_ops = {.on_claims = on_claims, .on_news = on_news};

static struct finder *finder_of(void *arg, size_t row, bool *is_row)
{
    const struct controls *controls = arg;
    *is_row = row < controls->topology->n_rows;
    return *is_row && controls->rows[row] != NULL ? controls->rows[row]->finder : NULL;
}

static const struct replica_poll_ops poll_ops = {.finder = finder_of};

/* ---- its life ---- */

static void on_asked(uv_async_t *async)
{
    const struct controls *controls = async->data;
    bool is_wanted =
        controls->cluster != NULL && atomic_load_explicit(&controls->upstream->is_topology_asked, memory_order_acquire);
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
    for (unsigned i = 0; i < TIMERS; i++) {
        uv_timer_init(&controls->loop->uv, &controls->timers[i]);
        controls->timers[i].data = controls;
    }
    controls->n_handles = 1 + TIMERS;
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
        .replicas = reads_replicas(controls->upstream) ? REPLICAS_ASKED : REPLICAS_NOT_ASKED,
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
    controls->choice.form = settings->sources->form == SOURCES_SENTINEL ? MASTERSHIP_SENTINELS : MASTERSHIP_LIST;
    print_sources(controls->text, sizeof controls->text, settings->sources);
    controls->rows = mem_zalloc(1, sizeof(struct member *));
    controls->kin = new_nobody(controls, NULL);
    controls->topology = topology_new(&controls->kin, 1);
    bool is_cluster = settings->sources->form == SOURCES_CLUSTER;
    finder.kind = controls->is_replicated || is_cluster ? FINDER_MEMBER : FINDER_ALONE;
    finder.kin = is_cluster ? NULL : controls->kin; /* each node of a cluster has a fair queue of its own */
    members_init(&controls->members, loop, &finder, &members_ops, controls);
    if (settings->sources->form == SOURCES_SENTINEL)
        open_sentinels(controls, settings);
    else
        add_sources(controls, settings->sources);
    if (is_cluster)
        controls->cluster = cluster_open(loop, controls->upstream, &controls->members, &cluster_ops, controls);
    if (is_cluster)
        follow_cluster(controls);
    else if (!controls->is_replicated)
        publish(controls, controls->members.all[0]);
    init_handles(controls);
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
        controls->poll = replica_poll_open(controls->loop, controls->upstream, &poll_ops, controls);
    if (controls->is_replicated)
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

/* ---- what is known of a row ---- */

const struct finder *controls_finder(const struct controls *controls, size_t row)
{
    return controls->rows[row] != NULL ? controls->rows[row]->finder : NULL;
}

/* NULL: it has no address. */
static const struct control *control_of(const struct controls *controls, size_t row)
{
    const struct finder *finder = controls_finder(controls, row);
    return finder != NULL ? finder_control(finder) : NULL;
}

bool controls_is_up(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL && control_is_up(control);
}

const char *controls_why(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_why(control) : "";
}

bool controls_is_turned_away(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL && control_is_turned_away(control);
}

enum pulse_state controls_pulse(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_pulse(control) : PULSE_WELL;
}

uint64_t controls_silence_ns(const struct controls *controls, size_t row, uint64_t now_ns)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_silence_ns(control, now_ns) : 0;
}

bool controls_are_replicated(const struct controls *controls)
{
    return controls->is_replicated;
}

const struct cluster *controls_cluster(const struct controls *controls)
{
    return controls->cluster;
}

static size_t row_of(const struct controls *controls, const struct member *member)
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
    *out = (struct controls_server){.key = member->key,
                                    .finder = member->finder,
                                    .row = row_of(controls, member),
                                    .epoch = member == home_of(controls) ? controls->choice.epoch : 0,
                                    .changed_ns = member->changed_ns};
    return true;
}

const char *controls_why_no_master(const struct controls *controls)
{
    return controls->choice.text;
}

static void on_closed(uv_handle_t *handle)
{
    struct controls *controls = handle->data;
    if (--controls->n_handles > 0)
        return;
    topology_put(controls->topology);
    node_put(controls->kin);
    free(controls->rows);
    free(controls);
}

/* What is closed asynchronously owns itself, and says nothing more. */
void controls_close(struct controls *controls)
{
    upstream_set_asked(controls->upstream, NULL);
    if (controls->poll != NULL)
        replica_poll_close(controls->poll);
    members_fini(&controls->members);
    if (controls->sentinels != NULL)
        sentinels_close(controls->sentinels);
    if (controls->cluster != NULL)
        cluster_close(controls->cluster);
    uv_close((uv_handle_t *)&controls->asked, on_closed);
    for (unsigned i = 0; i < TIMERS; i++)
        uv_close((uv_handle_t *)&controls->timers[i], on_closed);
}
