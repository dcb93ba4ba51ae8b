#include "front/client/read_side.h"

#include <stdlib.h>

#include "base/clock.h"

struct read_side *read_side_new(struct client *client, uint32_t number)
{
    struct read_side *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return NULL;
    reading->client = client;
    reading->number = number;
    list_init(&reading->question.in_auth_lanes);
    return reading;
}

static void read_side_end_question(struct read_side *reading)
{
    if (reading->question.login == NULL)
        return;
    auth_lanes_forget(&reading->question);
    login_put(reading->question.login);
    reading->question.login = NULL;
    auth_proof_drop(&reading->question.proof);
}

static void read_side_drop_all(struct read_side *reading)
{
    read_side_end_question(reading);
    lease_drop(&reading->other);
    auth_proof_drop(&reading->proof);
}

void read_side_stop(struct client *client)
{
    if (read_side_of(client) != NULL)
        read_side_drop_all(read_side_of(client));
}

void read_side_free(struct read_side *reading)
{
    if (reading == NULL)
        return;
    read_side_drop_all(reading);
    node_put(reading->node);
    node_put(reading->refused);
    free(reading);
}

/* ---- nodes ---- */

struct nodes_row *read_side_find_row(const struct front *front, const struct node *node)
{
    const struct nodes *nodes = &front->nodes;
    for (size_t i = TOPOLOGY_DEFAULT + 1; node != NULL && i < nodes->n; i++)
        if (lanes_node(&nodes->rows[i]->lanes) == node)
            return nodes->rows[i];
    return NULL;
}

struct nodes_row *read_side_row(const struct client *client)
{
    struct nodes_row *row = read_side_is_at_replica(client)
                                ? read_side_find_row(client->front, read_side_of(client)->node)
                                : NULL;
    return row != NULL ? row : front_default_row(client->front);
}

/* ---- sides ---- */

static void swap_leases(struct client *client)
{
    const struct lease now = client->shared;
    client->shared = read_side_of(client)->other;
    read_side_of(client)->other = now;
}

void read_side_enter(struct client *client)
{
    swap_leases(client);
    read_side_of(client)->side = SIDE_REPLICA;
    read_side_of(client)->was_there = true;
}

/* All replies from the replica have reached the client, since no call is in flight. */
void read_side_leave(struct client *client)
{
    swap_leases(client);
    read_side_of(client)->side = SIDE_DEFAULT;
    read_side_of(client)->there_ns = clock_ns();
    read_side_of(client)->look_ns = 0;
}

void read_side_choose(struct client *client, struct node *node)
{
    struct read_side *reading = read_side_of(client);
    if (reading->node == node)
        return;
    read_side_drop_all(reading);
    node_put(reading->node);
    reading->node = node != NULL ? node_get(node) : NULL;
    reading->was_there = false;
}

void read_side_end_session(struct client *client)
{
    struct read_side *reading = read_side_of(client);
    if (reading == NULL)
        return;
    if (reading->side == SIDE_REPLICA)
        read_side_leave(client);
    lease_drop(&reading->other);
}

void read_side_end_login(struct client *client)
{
    struct read_side *reading = read_side_of(client);
    if (reading == NULL)
        return;
    read_side_end_session(client);
    read_side_drop_all(reading);
    node_put(reading->refused);
    reading->refused = NULL;
    reading->n_refusals = 0;
    reading->ask_ns = 0;
}

void read_side_reset(struct client *client)
{
    read_side_end_login(client);
    if (read_side_of(client) != NULL)
        read_side_of(client)->has_asked = false;
}

void read_side_note_answered(struct client *client, bool is_write)
{
    struct read_side *reading = read_side_of(client);
    bool counts = !is_write || client->front->nodes.worker_lanes.upstream->reads.own_writes;
    if (reading == NULL || reading->side == SIDE_REPLICA || !counts)
        return;
    reading->seen_ns = clock_ns();
    if (is_write)
        reading->wrote_ns = reading->seen_ns;
}

void read_side_note_left_lane(struct client *client)
{
    read_side_note_answered(client, false);
    read_side_note_answered(client, true);
}
