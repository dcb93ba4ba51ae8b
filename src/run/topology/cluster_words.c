#include "run/topology/cluster_words.h"

#include <stdio.h>
#include <string.h>

static bool is_away(const struct cluster *cluster, size_t number)
{
    const struct member *member = cluster_member(cluster, number);
    return member == NULL || finder_word(member->finder).is_lost;
}

static bool serves(const struct cluster_view_node *node)
{
    return node->id[0] != '\0' && node->n_slots > 0;
}

struct cluster_service cluster_words_look(const struct cluster *cluster)
{
    const struct cluster_view *view = cluster_known(cluster);
    struct cluster_service service = {.n_served = cluster_view_served(view)};
    for (size_t i = 0; i < cluster_view_count(view); i++) {
        const struct cluster_view_node *node = cluster_view_node(view, i);
        if (!serves(node))
            continue;
        service.n_masters++;
        if (is_away(cluster, i))
            continue;
        service.n_masters_up++;
        service.n_up += node->n_slots;
    }
    return service;
}

/* "10.0.0.3:7000, 10.0.0.4:7000" */
static void print_away(const struct cluster *cluster, char *out, size_t room)
{
    const struct cluster_view *view = cluster_known(cluster);
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < cluster_view_count(view) && n < room; i++) {
        const struct cluster_view_node *node = cluster_view_node(view, i);
        if (serves(node) && is_away(cluster, i))
            n += (size_t)snprintf(out + n, room - n, "%s%.100s:%u", n > 0 ? ", " : "",
                                  node->host[0] != '\0' ? node->host : node->hostname, (unsigned)node->port);
    }
}

bool cluster_words_print(const struct cluster *cluster, char out[CLUSTER_WORDS_ROOM])
{
    char away[CLUSTER_WORDS_ROOM / 2];
    struct cluster_service service = cluster_words_look(cluster);
    if (cluster_is_unknown(cluster)) {
        size_t n = (size_t)snprintf(out, CLUSTER_WORDS_ROOM, "no node has told which nodes there are: ");
        cluster_explain(cluster, out + n, CLUSTER_WORDS_ROOM - n);
        return false;
    }
    if (service.n_up == SLOT_COUNT) {
        snprintf(out, CLUSTER_WORDS_ROOM, "%zu master%s serve%s all %d slots", service.n_masters,
                 service.n_masters == 1 ? "" : "s", service.n_masters == 1 ? "s" : "", SLOT_COUNT);
        return true;
    }
    size_t n = (size_t)snprintf(out, CLUSTER_WORDS_ROOM, "%zu of %d slots are served", service.n_up, SLOT_COUNT);
    if (service.n_served < SLOT_COUNT)
        n += (size_t)snprintf(out + n, CLUSTER_WORDS_ROOM - n, "; no node serves %zu", SLOT_COUNT - service.n_served);
    print_away(cluster, away, sizeof away);
    if (away[0] != '\0')
        snprintf(out + n, CLUSTER_WORDS_ROOM - n, "; %zu are away with %s", service.n_served - service.n_up, away);
    return false;
}

/* ---- what has changed ---- */

static bool has_master(const struct topology *topology, const struct node *node)
{
    for (size_t i = 0; i < topology->n_masters; i++)
        if (topology->rows[i].node == node)
            return true;
    return false;
}

bool cluster_words_print_change(const struct topology *before, const struct topology *now, size_t i,
                                char out[CLUSTER_WORDS_ROOM])
{
    const struct node *node = before->rows[i].node;
    uint16_t slot = 0;
    if (!node_has_address(node) || has_master(now, node))
        return false;
    while (slot < SLOT_COUNT && slot_map_row(before->slots, slot) != i)
        slot++;
    uint16_t row = slot < SLOT_COUNT ? slot_map_row(now->slots, slot) : SLOT_UNSERVED;
    size_t n = (size_t)snprintf(out, CLUSTER_WORDS_ROOM, "%.150s serves no slots any more", node->text);
    if (row != SLOT_UNSERVED)
        snprintf(out + n, CLUSTER_WORDS_ROOM - n, ", %.150s serves slot %u", now->rows[row].node->text, (unsigned)slot);
    return true;
}
