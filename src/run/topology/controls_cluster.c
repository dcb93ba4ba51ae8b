/* The topology of a cluster, from the view of its nodes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/topology/cluster.h"
#include "run/topology/controls.h"
#include "run/topology/controls_state.h"
#include "run/topology/failover_story.h"
#include "run/topology/members.h"
#include "upstream/node/topology.h"

/* ---- failovers of shards ---- */

static bool is_on(const struct shard_story *shard)
{
    return shard->story.missed_ns != 0;
}

/* Returns the member of this row; NULL: none. */
static const struct member *controls_cluster_member_at(const struct topology *topology,
                                                       struct member *const *rows, uint16_t row)
{
    return row < topology->n_masters ? rows[row] : NULL;
}

static void controls_cluster_go_on(struct shard_story *shard, const struct topology *topology,
                                   struct member *const *rows, uint64_t now_ns)
{
    const struct member *member =
        controls_cluster_member_at(topology, rows, slot_map_row(topology->slots, shard->slot));
    if (member == NULL)
        return;
    uint64_t lost_ns = finder_word(member->finder).lost_ns;
    if (lost_ns != 0)
        failover_story_miss(&shard->story, member->key, lost_ns);
    else
        failover_story_find(&shard->story, member->key, now_ns);
}

/* True if an unfinished story is about this row. */
static bool controls_cluster_is_told_of(const struct shard_stories *stories,
                                        const struct topology *topology, uint16_t row)
{
    for (int i = 0; i < SHARD_STORIES; i++)
        if (is_on(&stories->all[i]) && slot_map_row(topology->slots, stories->all[i].slot) == row)
            return true;
    return false;
}

static void controls_cluster_begin(struct shard_stories *stories, const struct topology *topology,
                                   uint16_t row, const struct member *member, uint64_t lost_ns)
{
    struct shard_story *free = NULL;
    uint16_t slot = 0;
    while (slot < SLOT_COUNT && slot_map_row(topology->slots, slot) != row)
        slot++;
    for (int i = 0; i < SHARD_STORIES && free == NULL; i++)
        if (!is_on(&stories->all[i]))
            free = &stories->all[i];
    if (slot == SLOT_COUNT || free == NULL)
        return;
    free->slot = slot;
    failover_story_rest(&free->story, &stories->rest);
    failover_story_miss(&free->story, member->key, lost_ns);
}

/*
 * Updates the stories after members were connected or lost. `rows`: the members of the topology's
 * rows; each may be NULL.
 */
static void shard_stories_follow(struct shard_stories *stories, const struct topology *topology,
                                 struct member *const *rows, uint64_t now_ns)
{
    if (topology->slots == NULL)
        return;
    for (int i = 0; i < SHARD_STORIES; i++)
        if (is_on(&stories->all[i]))
            controls_cluster_go_on(&stories->all[i], topology, rows, now_ns);
    for (uint16_t row = 0; row < topology->n_masters; row++) {
        const struct member *member = controls_cluster_member_at(topology, rows, row);
        uint64_t lost_ns = member != NULL ? finder_word(member->finder).lost_ns : 0;
        if (lost_ns != 0 && !controls_cluster_is_told_of(stories, topology, row))
            controls_cluster_begin(stories, topology, row, member, lost_ns);
    }
}

/* Calls `tell` for each story that has been over for `after_ns`. To be called repeatedly. */
static void shard_stories_tell(struct shard_stories *stories, const struct fates *now,
                               uint64_t now_ns, uint64_t after_ns,
                               void (*tell)(void *arg, const char *line), void *arg)
{
    char line[FAILOVER_STORY_ROOM];
    for (int i = 0; i < SHARD_STORIES; i++) {
        struct failover_story *story = &stories->all[i].story;
        uint64_t due_ns = failover_story_due_ns(story, after_ns);
        if (due_ns != 0 && now_ns >= due_ns && failover_story_tell(story, now, line))
            tell(arg, line);
    }
    stories->rest = *now;
}

/* ---- the rows of the topology ---- */

struct cluster_rows {
    struct member **members;   /* of each row; heap; NULL for a default node without an address */
    struct topology_row *rows; /* heap; the texts are the view's; nodes are borrowed */
    size_t n, n_masters;       /* 0: no known node serves slots */
    struct slot_map *slots;    /* moved into a topology, or freed */
};

static const struct cluster_view_node *node_at(const struct cluster *cluster, size_t number)
{
    return cluster_view_node(cluster_known(cluster), number);
}

static uint16_t row_of_member(const struct cluster_rows *rows, const struct member *member)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->members[i] == member)
            return (uint16_t)i;
    return SLOT_UNSERVED;
}

static uint16_t controls_cluster_add(struct cluster_rows *rows, struct member *member,
                                     const struct cluster_view_node *node)
{
    uint16_t row = (uint16_t)rows->n++;
    rows->members[row] = member;
    rows->rows[row] =
        (struct topology_row){.node = finder_node(member->finder),
                              .master = row,
                              .host = node->host[0] != '\0' ? node->host : NULL,
                              .hostname = node->hostname[0] != '\0' ? node->hostname : NULL,
                              .port = node->port};
    return row;
}

/* ---- the default node ---- */

/*
 * False for a lost node that most masters call failed. As the default node it would keep clients
 * from logging in.
 */
static bool may_be_default(const struct member *member, const struct cluster_view_node *node)
{
    return !node->is_failed || !finder_word(member->finder).is_lost;
}

static bool is_up(const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    return control != NULL && control_is_up(control);
}

/*
 * Returns the row of the default node. The present default node is chosen if it may stay. Else the
 * first row that is up is chosen, else the first row.
 */
static size_t choose_default_node(const struct cluster_rows *rows, const struct cluster *cluster,
                                  const uint16_t *numbers, const struct member *default_node)
{
    size_t best = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->members[i] == default_node &&
            may_be_default(default_node, node_at(cluster, numbers[i])))
            return i;
        if (is_up(rows->members[i]) && !is_up(rows->members[best]))
            best = i;
    }
    return best;
}

static void swap(struct cluster_rows *rows, uint16_t *numbers, size_t a, size_t b)
{
    struct member *member = rows->members[a];
    struct topology_row row = rows->rows[a];
    uint16_t number = numbers[a];
    rows->members[a] = rows->members[b];
    rows->rows[a] = rows->rows[b];
    numbers[a] = numbers[b];
    rows->members[b] = member;
    rows->rows[b] = row;
    numbers[b] = number;
    rows->rows[a].master = (uint16_t)a;
    rows->rows[b].master = (uint16_t)b;
}

/* ---- masters and replicas ---- */

/* row_of[i] becomes the row of the view's node i, or SLOT_UNSERVED. */
static void add_masters(struct cluster_rows *rows, const struct cluster *cluster,
                        const struct member *default_node, uint16_t *row_of)
{
    size_t n = cluster_view_count(cluster_known(cluster));
    uint16_t *numbers = mem_zalloc(n + 1, sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_view_node *node = node_at(cluster, i);
        struct member *member = node->n_slots > 0 ? cluster_member(cluster, i) : NULL;
        if (member != NULL && row_of_member(rows, member) == SLOT_UNSERVED)
            numbers[controls_cluster_add(rows, member, node)] = (uint16_t)i;
    }
    rows->n_masters = rows->n;
    if (rows->n > 0)
        swap(rows, numbers, 0, choose_default_node(rows, cluster, numbers, default_node));
    for (size_t i = 0; i < rows->n; i++)
        row_of[numbers[i]] = (uint16_t)i;
    free(numbers);
}

static void add_replicas(struct cluster_rows *rows, const struct cluster *cluster,
                         const uint16_t *row_of)
{
    for (size_t i = 0; i < cluster_view_count(cluster_known(cluster)); i++) {
        const struct cluster_view_node *node = node_at(cluster, i);
        struct member *member = cluster_reads(cluster, node) ? cluster_member(cluster, i) : NULL;
        if (member == NULL || row_of[node->master] == SLOT_UNSERVED ||
            row_of_member(rows, member) != SLOT_UNSERVED ||
            !node_has_address(finder_node(member->finder)))
            continue;
        uint16_t row = controls_cluster_add(rows, member, node);
        rows->rows[row].master = row_of[node->master];
    }
}

/* ---- slots ---- */

/* Returns the new row of the node in this row of `now`; SLOT_UNSERVED: none. */
static uint16_t carried(const struct cluster_rows *rows, const struct topology *now, uint16_t row)
{
    for (size_t i = 0; row < now->n_masters && i < rows->n_masters; i++)
        if (rows->rows[i].node == now->rows[row].node)
            return (uint16_t)i;
    return SLOT_UNSERVED;
}

static uint16_t row_of_slot(const struct cluster *cluster, const uint16_t *row_of, uint16_t slot)
{
    uint16_t owner = cluster_view_owner(cluster_known(cluster), slot);
    return owner != CLUSTER_NOBODY ? row_of[owner] : SLOT_UNSERVED;
}

static void set_slots(struct cluster_rows *rows, const struct cluster *cluster,
                      const struct topology *now, const uint16_t *row_of)
{
    const struct cluster_view *view = cluster_known(cluster);
    bool holds = now->slots != NULL && cluster_view_wants_another(view);
    uint16_t other;
    rows->slots = slot_map_new();
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint16_t row = row_of_slot(cluster, row_of, slot);
        uint16_t kept = holds ? carried(rows, now, slot_map_row(now->slots, slot)) : SLOT_UNSERVED;
        slot_map_set(rows->slots, slot, kept != SLOT_UNSERVED ? kept : row);
        rows->slots->states[slot] = (uint8_t)cluster_view_state(view, slot, &other);
    }
}

/*
 * Makes the rows; the caller calls cluster_rows_fini. `default_node`: the member in row 0 now,
 * NULL: none. `now`: the topology that workers have.
 */
static void cluster_rows_make(struct cluster_rows *rows, const struct cluster *cluster,
                              const struct member *default_node, const struct topology *now)
{
    size_t n = cluster_view_count(cluster_known(cluster));
    uint16_t *row_of = mem_zalloc(n + 1, sizeof *row_of);
    for (size_t i = 0; i < n; i++)
        row_of[i] = SLOT_UNSERVED;
    *rows = (struct cluster_rows){.members = mem_zalloc(n + 1, sizeof(struct member *)),
                                  .rows = mem_zalloc(n + 1, sizeof(struct topology_row))};
    add_masters(rows, cluster, default_node, row_of);
    add_replicas(rows, cluster, row_of);
    set_slots(rows, cluster, now, row_of);
    free(row_of);
}

static bool is_same_slot(const struct cluster_rows *rows, const struct topology *now, uint16_t slot)
{
    return slot_map_row(rows->slots, slot) == slot_map_row(now->slots, slot) &&
           rows->slots->states[slot] == now->slots->states[slot];
}

/* True if the rows equal the topology that workers have. */
static bool cluster_rows_are_same(const struct cluster_rows *rows, const struct topology *now)
{
    bool is_same =
        now->slots != NULL && rows->n == now->n_rows && rows->n_masters == now->n_masters;
    for (size_t i = 0; i < rows->n && is_same; i++)
        is_same =
            rows->rows[i].node == now->rows[i].node && rows->rows[i].master == now->rows[i].master;
    for (uint16_t slot = 0; slot < SLOT_COUNT && is_same; slot++)
        is_same = is_same_slot(rows, now, slot);
    return is_same;
}

static void cluster_rows_fini(struct cluster_rows *rows)
{
    free(rows->members);
    free(rows->rows);
    slot_map_free(rows->slots);
    *rows = (struct cluster_rows){.members = NULL};
}

/* ---- the topology ---- */

static bool controls_cluster_has_row(const struct topology *topology, const struct node *node)
{
    for (size_t i = 0; i < topology->n_rows; i++)
        if (topology->rows[i].node == node)
            return true;
    return false;
}

/* Demotes lost nodes that have been replaced: clients that wait for their replies are closed. */
static void demote_lost(struct controls *controls, const struct topology *topology)
{
    for (size_t i = 0; i < controls->topology->n_rows; i++) {
        struct member *member = controls->rows[i];
        struct node *node = controls->topology->rows[i].node;
        if (controls_cluster_has_row(topology, node) || member == NULL ||
            !finder_word(member->finder).is_lost)
            continue;
        node_demote(node);
        if (finder_node(member->finder) == node && !member->is_leaving)
            finder_give_up(member->finder);
    }
}

/* ---- log lines ---- */

static bool has_master(const struct topology *topology, const struct node *node)
{
    for (size_t i = 0; i < topology->n_masters; i++)
        if (topology->rows[i].node == node)
            return true;
    return false;
}

/*
 * Prints "10.0.0.1:7000 serves no slots any more, 10.0.0.4:7000 serves slot 0" for row i of
 * `before`. False: the node of that row is still in a master's row of `now`.
 */
static bool print_change(const struct topology *before, const struct topology *now, size_t i,
                         char out[CLUSTER_WORDS_ROOM])
{
    const struct node *node = before->rows[i].node;
    uint16_t slot = 0;
    if (!node_has_address(node) || has_master(now, node))
        return false;
    while (slot < SLOT_COUNT && slot_map_row(before->slots, slot) != i)
        slot++;
    uint16_t row = slot < SLOT_COUNT ? slot_map_row(now->slots, slot) : SLOT_UNSERVED;
    size_t n =
        (size_t)snprintf(out, CLUSTER_WORDS_ROOM, "%.150s no longer serves slots", node->text);
    if (row != SLOT_UNSERVED)
        snprintf(out + n, CLUSTER_WORDS_ROOM - n, ", %.150s serves slot %u",
                 now->rows[row].node->text, (unsigned)slot);
    return true;
}

static void controls_cluster_tell_changes(struct controls *controls, const struct topology *now)
{
    const struct topology *before = controls->topology;
    char what[CLUSTER_WORDS_ROOM], line[CLUSTER_WORDS_ROOM + SOURCES_TEXT + 16];
    for (size_t i = 0; before->slots != NULL && i < before->n_masters; i++)
        if (print_change(before, now, i, what)) {
            snprintf(line, sizeof line, "upstream %s: %s", controls->text, what);
            controls_tell(controls, LOG_WARN, line, line);
        }
}

/* Logs which slots are served, once per change. */
static void tell_service(struct controls *controls)
{
    char text[CLUSTER_WORDS_ROOM], line[CLUSTER_WORDS_ROOM + SOURCES_TEXT + 16];
    bool is_whole = cluster_words_print(controls->cluster, text);
    if (strcmp(text, controls->cluster_text) == 0 || !cluster_is_settled(controls->cluster))
        return;
    snprintf(controls->cluster_text, sizeof controls->cluster_text, "%s", text);
    snprintf(line, sizeof line, "upstream %s: %s", controls->text, text);
    controls_tell(controls, is_whole ? LOG_INFO : LOG_WARN, line, line);
}

/*
 * Renews the connections to a node with a new role. Connections to a master have not sent READONLY.
 * Connections to a replica have. If the node becomes a master and then a replica again, connections
 * with READONLY would serve stale reads before weir knows.
 */
static void mark_replicas(const struct controls *controls, const struct cluster_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct finder *finder = rows->members[i] != NULL ? rows->members[i]->finder : NULL;
        bool is_replica = i >= rows->n_masters;
        bool has_changed = finder != NULL && node_is_read_only(rows->rows[i].node) != is_replica;
        if (has_changed && controls_cluster_has_row(controls->topology, rows->rows[i].node)) {
            finder_renew(finder);
            rows->rows[i].node = finder_node(finder);
        }
        if (rows->members[i] != NULL)
            node_set_read_only(rows->rows[i].node, is_replica);
    }
}

/* Publishes the rows, which are handed over. Without a master the default node has no address. */
static void publish_rows(struct controls *controls, struct cluster_rows *rows)
{
    struct node *nobody = NULL;
    if (rows->n == 0) {
        nobody = controls_default_node(controls, NULL);
        rows->rows[0] = (struct topology_row){.node = nobody, .master = 0};
        rows->n = rows->n_masters = 1;
    }
    mark_replicas(controls, rows);
    if (!cluster_rows_are_same(rows, controls->topology)) {
        struct topology *topology =
            topology_new_cluster(rows->rows, rows->n, rows->n_masters, rows->slots);
        for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
            controls->told[slot] = slot_map_row(topology->slots, slot);
        demote_lost(controls, topology);
        controls_cluster_tell_changes(controls, topology);
        controls_set_topology(controls, topology, rows->members);
        rows->members = NULL;
        rows->slots = NULL;
    }
    node_put(nobody);
}

void controls_follow_cluster(struct controls *controls)
{
    struct cluster_rows rows;
    struct member *before = controls_default(controls);
    cluster_sort_members(controls->cluster, controls->topology);
    cluster_rows_make(&rows, controls->cluster, before, controls->topology);
    publish_rows(controls, &rows);
    cluster_rows_fini(&rows);
    cluster_sort_members(controls->cluster, controls->topology);
    shard_stories_follow(&controls->shards, controls->topology, controls->rows, clock_ns());
    controls_drop_leaving(controls);
    if (controls_default(controls) != NULL && controls_default(controls) != before)
        controls_hand_table(controls, controls_default(controls));
    if (!controls->is_started)
        return;
    tell_service(controls);
    if (cluster_is_settled(controls->cluster))
        controls_settle(controls);
}

static void tell_story(void *arg, const char *line)
{
    controls_tell(arg, LOG_WARN, line, line);
}

void controls_tell_shards(struct controls *controls, uint64_t now_ns)
{
    struct fates fates = {{0}};
    controls->ops->sum_fates(controls->arg, &fates);
    shard_stories_tell(&controls->shards, &fates, now_ns,
                       upstream_time(controls->upstream, STORY_NS), tell_story, controls);
}

/* Reports to the view each slot that workers have moved to another row because of a redirect. */
static void controls_cluster_on_question(void *arg)
{
    struct controls *controls = arg;
    const struct topology *now = controls->topology;
    for (uint16_t slot = 0; now->slots != NULL && slot < SLOT_COUNT; slot++) {
        uint16_t row = slot_map_row(now->slots, slot);
        if (row == controls->told[slot])
            continue;
        controls->told[slot] = row;
        if (row >= now->n_masters || now->rows[row].port == 0)
            continue;
        const char *host =
            now->rows[row].host != NULL ? now->rows[row].host : now->rows[row].hostname;
        cluster_note_redirect(controls->cluster, slot, slice_str(host), now->rows[row].port);
    }
}

static void controls_cluster_on_answer(void *arg)
{
    controls_choose_soon(arg);
}

static const struct cluster_ops cluster_ops = {.on_question = controls_cluster_on_question,
                                               .on_answer = controls_cluster_on_answer,
                                               .on_news = controls_tell};

/* ---- nodes known to the predecessor ---- */

/*
 * Returns the nodes if they were found by these entry points. Else "": the nodes may belong to
 * another cluster.
 */
static const char *nodes_behind_sources(const struct controls *controls, const char *nodes)
{
    size_t n = strlen(controls->text);
    return strncmp(nodes, controls->text, n) == 0 && nodes[n] == '\n' ? nodes + n + 1 : "";
}

void controls_add_nodes(struct controls *controls, const char *nodes)
{
    for (const char *at = nodes_behind_sources(controls, nodes), *end; *at != '\0';
         at = end + (*end == ' ')) {
        struct address address;
        char why[128], key[ADDRESS_TEXT];
        end = strchrnul(at, ' ');
        if (!address_parse(&address, slice_of(at, (size_t)(end - at)), false,
                           (struct why){why, sizeof why}))
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
    controls->cluster = cluster_open(controls->loop, controls->upstream, &controls->members,
                                     &cluster_ops, controls);
    controls_follow_cluster(controls);
}
