/* The topology of a cluster follows what its nodes say. */
#include "run/topology/controls.h"
#include "run/topology/controls_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/topology/cluster_rows.h"

static bool has_row(const struct topology *topology, const struct node *node)
{
    for (size_t i = 0; i < topology->n_rows; i++)
        if (topology->rows[i].node == node)
            return true;
    return false;
}

/* A lost node that another has replaced says nothing any more: clients that wait there are closed. */
static void demote_lost(struct controls *controls, const struct topology *topology)
{
    for (size_t i = 0; i < controls->topology->n_rows; i++) {
        struct member *member = controls->rows[i];
        struct node *node = controls->topology->rows[i].node;
        if (has_row(topology, node) || member == NULL || !finder_word(member->finder).is_lost)
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

/*
 * A node with another part is connected to anew: on connections to a master nothing has been said of reading, and
 * those to a
 * replica would, when it has been a master and is a replica again, answer reads with the past before weir knows.
 */
static void mark_replicas(const struct controls *controls, const struct cluster_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct finder *finder = rows->members[i] != NULL ? rows->members[i]->finder : NULL;
        bool is_replica = i >= rows->n_masters;
        bool has_changed = finder != NULL && node_is_read_only(rows->rows[i].node) != is_replica;
        if (has_changed && has_row(controls->topology, rows->rows[i].node)) {
            finder_renew(finder);
            rows->rows[i].node = finder_node(finder);
        }
        if (rows->members[i] != NULL)
            node_set_read_only(rows->rows[i].node, is_replica);
    }
}

/* The rows are handed over. Without a master the home is a node without an address. */
static void publish_rows(struct controls *controls, struct cluster_rows *rows)
{
    struct node *nobody = NULL;
    if (rows->n == 0) {
        nobody = controls_home_node(controls, NULL);
        rows->rows[0] = (struct topology_row){.node = nobody, .master = 0};
        rows->n = rows->n_masters = 1;
    }
    mark_replicas(controls, rows);
    if (!cluster_rows_are_same(rows, controls->topology)) {
        struct topology *topology = topology_new_cluster(rows->rows, rows->n, rows->n_masters, rows->slots);
        for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
            controls->told[slot] = slot_map_row(topology->slots, slot);
        demote_lost(controls, topology);
        tell_changes(controls, topology);
        controls_set_topology(controls, topology, rows->members);
        rows->members = NULL;
        rows->slots = NULL;
    }
    node_put(nobody);
}

void controls_follow_cluster(struct controls *controls)
{
    struct cluster_rows rows;
    struct member *before = controls_home(controls);
    cluster_sort_members(controls->cluster, controls->topology);
    cluster_rows_make(&rows, controls->cluster, before, controls->topology);
    publish_rows(controls, &rows);
    cluster_rows_fini(&rows);
    cluster_sort_members(controls->cluster, controls->topology);
    shard_stories_follow(&controls->shards, controls->topology, controls->rows, clock_ns());
    controls_drop_leaving(controls);
    if (controls_home(controls) != NULL && controls_home(controls) != before)
        controls_hand_table(controls, controls_home(controls));
    if (!controls->is_started)
        return;
    tell_service(controls);
    if (cluster_is_settled(controls->cluster))
        controls_settle(controls);
}

static void tell_story(void *arg, const char *line)
{
    const struct controls *controls = arg;
    controls->ops->on_news(controls->arg, LOG_WARN, line, line);
}

void controls_tell_shards(struct controls *controls, uint64_t now_ns)
{
    struct fates fates = {{0}};
    controls->ops->sum_fates(controls->arg, &fates);
    shard_stories_tell(&controls->shards, &fates, now_ns, upstream_time(controls->upstream, STORY_NS), tell_story,
                       controls);
}

static void on_question(void *arg)
{
    struct controls *controls = arg;
    (void)cluster_rows_note_redirects(controls->cluster, controls->topology, controls->told);
}

static void on_answer(void *arg)
{
    controls_choose_soon(arg);
}

static void on_news(void *arg, enum log_level level, const char *about, const char *line)
{
    const struct controls *controls = arg;
    controls->ops->on_news(controls->arg, level, about, line);
}

static const struct cluster_ops cluster_ops = {.on_question = on_question, .on_answer = on_answer, .on_news = on_news};

/* ---- what the weir that this one replaces knew ---- */

/* Nodes of other entry points may be those of another cluster. */
static const char *nodes_behind_sources(const struct controls *controls, const char *nodes)
{
    size_t n = strlen(controls->text);
    return strncmp(nodes, controls->text, n) == 0 && nodes[n] == '\n' ? nodes + n + 1 : "";
}

void controls_add_nodes(struct controls *controls, const char *nodes)
{
    for (const char *at = nodes_behind_sources(controls, nodes), *end; *at != '\0'; at = end + (*end == ' ')) {
        struct address address;
        char why[128], key[ADDRESS_TEXT];
        end = strchrnul(at, ' ');
        if (!address_parse(&address, slice_of(at, (size_t)(end - at)), false, (struct why){why, sizeof why}))
            continue;
        address_print(&address, key, sizeof key);
        if (members_find(&controls->members, key) == NULL)
            (void)members_add(&controls->members, key, &address);
        address_fini(&address);
    }
}

void controls_list_nodes(const struct controls *controls, char out[NODES_LISTED])
{
    size_t len = 0;
    out[0] = '\0';
    if (controls->cluster == NULL)
        return;
    len = (size_t)snprintf(out, NODES_LISTED, "%s\n", controls->text);
    for (size_t i = 0; i < controls->topology->n_masters; i++) {
        const char *key = controls->rows[i] != NULL ? controls->rows[i]->key : "";
        if (key[0] != '\0' && len + strlen(key) + 2 < NODES_LISTED)
            len += (size_t)snprintf(out + len, NODES_LISTED - len, "%s ", key);
    }
}

void controls_open_cluster(struct controls *controls)
{
    controls->cluster = cluster_open(controls->loop, controls->upstream, &controls->members, &cluster_ops, controls);
    controls_follow_cluster(controls);
}
