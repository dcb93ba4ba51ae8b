#include "run/topology/cluster_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

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

static uint16_t add(struct cluster_rows *rows, struct member *member, const struct cluster_view_node *node)
{
    uint16_t row = (uint16_t)rows->n++;
    rows->members[row] = member;
    rows->rows[row] = (struct topology_row){.node = finder_node(member->finder),
                                            .master = row,
                                            .host = node->host[0] != '\0' ? node->host : NULL,
                                            .hostname = node->hostname[0] != '\0' ? node->hostname : NULL,
                                            .port = node->port};
    return row;
}

/* ---- the home ---- */

/* A home that is lost while most masters say that it fails keeps clients from logging in: another takes its place. */
static bool may_be_home(const struct member *member, const struct cluster_view_node *node)
{
    return !node->is_failed || !finder_word(member->finder).is_lost;
}

static bool is_up(const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    return control != NULL && control_is_up(control);
}

/* Of two that are not the home before: the one that is up, then the one that comes first. */
static size_t choose_home(const struct cluster_rows *rows, const struct cluster *cluster, const uint16_t *numbers,
                          const struct member *home)
{
    size_t best = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->members[i] == home && may_be_home(home, node_at(cluster, numbers[i])))
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

/* row_of has a row for each number of the view, or SLOT_UNSERVED. */
static void add_masters(struct cluster_rows *rows, const struct cluster *cluster, const struct member *home,
                        uint16_t *row_of)
{
    size_t n = cluster_view_count(cluster_known(cluster));
    uint16_t *numbers = mem_zalloc(n + 1, sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_view_node *node = node_at(cluster, i);
        struct member *member = node->n_slots > 0 ? cluster_member(cluster, i) : NULL;
        if (member != NULL && row_of_member(rows, member) == SLOT_UNSERVED)
            numbers[add(rows, member, node)] = (uint16_t)i;
    }
    rows->n_masters = rows->n;
    if (rows->n > 0)
        swap(rows, numbers, 0, choose_home(rows, cluster, numbers, home));
    for (size_t i = 0; i < rows->n; i++)
        row_of[numbers[i]] = (uint16_t)i;
    free(numbers);
}

static void add_replicas(struct cluster_rows *rows, const struct cluster *cluster, const uint16_t *row_of)
{
    for (size_t i = 0; i < cluster_view_count(cluster_known(cluster)); i++) {
        const struct cluster_view_node *node = node_at(cluster, i);
        struct member *member = cluster_reads(cluster, node) ? cluster_member(cluster, i) : NULL;
        if (member == NULL || row_of[node->master] == SLOT_UNSERVED || row_of_member(rows, member) != SLOT_UNSERVED ||
            !node_has_address(finder_node(member->finder)))
            continue;
        uint16_t row = add(rows, member, node);
        rows->rows[row].master = row_of[node->master];
    }
}

/* ---- slots ---- */

/* The row of the node that has this row of `now`; SLOT_UNSERVED: it has none. */
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

static void set_slots(struct cluster_rows *rows, const struct cluster *cluster, const struct topology *now,
                      const uint16_t *row_of)
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

void cluster_rows_make(struct cluster_rows *rows, const struct cluster *cluster, const struct member *home,
                       const struct topology *now)
{
    size_t n = cluster_view_count(cluster_known(cluster));
    uint16_t *row_of = mem_zalloc(n + 1, sizeof *row_of);
    for (size_t i = 0; i < n; i++)
        row_of[i] = SLOT_UNSERVED;
    *rows = (struct cluster_rows){.members = mem_zalloc(n + 1, sizeof(struct member *)),
                                  .rows = mem_zalloc(n + 1, sizeof(struct topology_row))};
    add_masters(rows, cluster, home, row_of);
    add_replicas(rows, cluster, row_of);
    set_slots(rows, cluster, now, row_of);
    free(row_of);
}

static bool is_same_slot(const struct cluster_rows *rows, const struct topology *now, uint16_t slot)
{
    return slot_map_row(rows->slots, slot) == slot_map_row(now->slots, slot) &&
           rows->slots->states[slot] == now->slots->states[slot];
}

bool cluster_rows_are_same(const struct cluster_rows *rows, const struct topology *now)
{
    bool is_same = now->slots != NULL && rows->n == now->n_rows && rows->n_masters == now->n_masters;
    for (size_t i = 0; i < rows->n && is_same; i++)
        is_same = rows->rows[i].node == now->rows[i].node && rows->rows[i].master == now->rows[i].master;
    for (uint16_t slot = 0; slot < SLOT_COUNT && is_same; slot++)
        is_same = is_same_slot(rows, now, slot);
    return is_same;
}

void cluster_rows_fini(struct cluster_rows *rows)
{
    free(rows->members);
    free(rows->rows);
    slot_map_free(rows->slots);
    *rows = (struct cluster_rows){.members = NULL};
}

/* ---- redirects ---- */

bool cluster_rows_note_redirects(struct cluster *cluster, const struct topology *now, uint16_t *told)
{
    bool is_any = false;
    for (uint16_t slot = 0; now->slots != NULL && slot < SLOT_COUNT; slot++) {
        uint16_t row = slot_map_row(now->slots, slot);
        if (row == told[slot])
            continue;
        told[slot] = row;
        if (row >= now->n_masters || now->rows[row].port == 0)
            continue;
        const char *host = now->rows[row].host != NULL ? now->rows[row].host : now->rows[row].hostname;
        cluster_note_redirect(cluster, slot, slice_str(host), now->rows[row].port);
        is_any = true;
    }
    return is_any;
}
