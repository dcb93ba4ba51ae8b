#include "front/shard_reads.h"

#include "base/clock.h"
#include "front/place.h"
#include "front/read_side.h"

#define AVOID_NS (10 * NS_PER_S) /* a replica that takes no client is left alone for so long (chosen) */
#define NO_ROW SIZE_MAX

static const struct topology *topology_of(const struct client *client)
{
    return client->front->nodes.topology;
}

static const struct reads_settings *settings_of(const struct client *client)
{
    return &client->front->nodes.commons.upstream->reads;
}

static size_t number_of(const struct client *client, const struct nodes_row *row)
{
    const struct nodes *nodes = &client->front->nodes;
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->rows[i] == row)
            return i;
    return NO_ROW;
}

static bool is_replica_of(const struct topology *topology, size_t row, size_t master)
{
    return row >= topology->n_masters && topology->rows[row].master == master;
}

static const struct place *place_at(const struct client *client, size_t row)
{
    return spread_place(client_spread(client), client->front->nodes.rows[row]);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When the client heard of the shard last elsewhere than from this replica, or from this one before it was in doubt. */
static uint64_t heard_elsewhere(const struct client *client, size_t row, size_t master)
{
    const struct topology *topology = topology_of(client);
    const struct read_side *reading = read_side_of(client);
    const struct place *own = place_at(client, row);
    uint64_t heard_ns = later(reading->seen_ns, reading->wrote_ns);
    for (size_t i = 0; i < topology->n_rows; i++) {
        bool is_other = i != row && (i == master || is_replica_of(topology, i, master));
        const struct place *place = is_other ? place_at(client, i) : NULL;
        if (place != NULL)
            heard_ns = later(heard_ns, place->heard_ns);
    }
    const struct reach *reach = &lanes_node(&client->front->nodes.rows[row]->lanes)->reach;
    return own != NULL && own->doubts != reach_doubts(reach) ? later(heard_ns, own->heard_ns) : heard_ns;
}

static bool may_read_at(const struct client *client, size_t row, size_t master)
{
    const struct nodes_row *at = client->front->nodes.rows[row];
    const struct reach *reach = &lanes_node(&at->lanes)->reach;
    const struct place *place = place_at(client, row);
    uint64_t now_ns = client->front->loop->now_ns;
    uint64_t as_of_ns = reach_as_of(reach, now_ns, settings_of(client)->lag_max_ns);
    if (as_of_ns == 0 || lanes_node(&at->lanes)->endpoint.length == 0 || at->lanes.down != ERR_NONE ||
        (place != NULL && now_ns < place->avoided_until_ns))
        return false;
    return as_of_ns > heard_elsewhere(client, row, master);
}

/* The n-th of the master's replicas, from `first` on, that may be read from; NO_ROW: none may. */
static size_t find(const struct client *client, size_t master, size_t first, size_t n_replicas)
{
    const struct topology *topology = topology_of(client);
    size_t seen = 0, best = NO_ROW;
    for (size_t i = topology->n_masters; i < topology->n_rows; i++) {
        if (!is_replica_of(topology, i, master))
            continue;
        bool is_first = seen++ % n_replicas == first;
        if ((best != NO_ROW && !is_first) || !may_read_at(client, i, master))
            continue;
        best = i;
        if (is_first)
            return i;
    }
    return best;
}

static bool wants(const struct client *client, const struct request *request)
{
    const struct read_side *reading = read_side_of(client);
    return request->command->reads_keys && !request->is_again &&
           (settings_of(client)->reads == READS_REPLICAS || reading->has_asked);
}

struct nodes_row *shard_reads_row(const struct client *client, const struct request *request, struct nodes_row *master)
{
    const struct topology *topology = topology_of(client);
    size_t row = wants(client, request) ? number_of(client, master) : NO_ROW;
    size_t n_replicas = 0;
    for (size_t i = topology->n_masters; row != NO_ROW && i < topology->n_rows; i++)
        n_replicas += is_replica_of(topology, i, row);
    if (n_replicas == 0)
        return master;
    bool has_share = settings_of(client)->reads == READS_REPLICAS; /* the master has one, too */
    size_t choice = read_side_of(client)->number % (n_replicas + has_share);
    if (has_share && choice == 0)
        return master;
    size_t replica = find(client, row, choice - has_share, n_replicas);
    return replica != NO_ROW ? client->front->nodes.rows[replica] : master;
}

bool shard_reads_must_wait(const struct client *client, const struct nodes_row *row)
{
    const struct topology *topology = topology_of(client);
    size_t number = number_of(client, row);
    if (number == NO_ROW)
        return false;
    size_t master = topology->rows[number].master;
    for (size_t i = 0; i < topology->n_rows; i++) {
        bool is_other = i != number && (i == master || is_replica_of(topology, i, master));
        const struct place *place = is_other ? place_at(client, i) : NULL;
        if (place != NULL && (place->rider.in_flight > 0 || place->n_hops > 0))
            return true;
    }
    return false;
}

bool shard_reads_give_up(struct place *place)
{
    const struct client *client = place->client;
    size_t row = number_of(client, place->row);
    if (row == NO_ROW || row < topology_of(client)->n_masters)
        return false;
    place_forget_refusal(place);
    place->avoided_until_ns = client->front->loop->now_ns + AVOID_NS;
    return true;
}
