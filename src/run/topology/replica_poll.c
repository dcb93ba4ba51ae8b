#include "run/topology/replica_poll.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/topology/controls_state.h"
#include "upstream/control_reply.h"
#include "upstream/node/offsets.h"
#include "upstream/node/topology.h"

#define HURRY_NS (2 * NS_PER_MS) /* least time between two rounds that workers want (chosen) */
/* interval of questions to replicas after a round that a worker wanted */
#define AGAIN_MS 2
/* how long replicas are asked in this interval: a waiting client checks again after 20 ms */
#define AGAIN_NS (16 * NS_PER_MS)
#define HANDLES 3

/* A master, and its reported offsets. */
struct shard {
    struct offsets offsets;
    /* the master that reported these offsets; only compared; NULL: none */
    const struct node *master;
};

struct replica_poll {
    uv_timer_t timer;
    uv_timer_t again; /* runs for AGAIN_NS after a worker has wanted a round */
    uv_async_t wanted;
    unsigned n_handles; /* handles that are not closed yet */
    struct upstream *upstream;
    const struct controls *controls;
    struct shard *shards; /* by the master's row; heap */
    size_t n_shards;
    uint64_t began_ns;  /* start of the present round */
    uint64_t wanted_ns; /* when a worker last wanted a round */
};

static const struct topology *replica_poll_topology_of(const struct replica_poll *poll)
{
    return poll->controls->topology;
}

/* Returns the finder of the row; NULL: the row stands for a missing master. */
static struct finder *replica_poll_finder_at(const struct replica_poll *poll, size_t row)
{
    const struct member *member = poll->controls->rows[row];
    return member != NULL ? member->finder : NULL;
}

/*
 * Returns the replica of this node, and sets *master to its master's row. NULL: the node is no
 * replica.
 */
static struct node *replica_of(const struct replica_poll *poll, const struct node *node,
                               size_t *master)
{
    for (size_t row = 0; row < replica_poll_topology_of(poll)->n_rows; row++) {
        const struct finder *finder = replica_poll_finder_at(poll, row);
        *master = replica_poll_topology_of(poll)->rows[row].master;
        if (finder != NULL && finder_node(finder) == node && *master != row &&
            *master < poll->n_shards)
            return finder_node(finder);
    }
    return NULL;
}

/* ---- answers ---- */

/*
 * Asks a master and its promoted replica for their roles, which differ from the topology. The reach
 * of replicas stays for replica-lag-max. Otherwise a client that reads from the promoted server
 * would go back in time at the old master.
 */
static void ask_roles(const struct replica_poll *poll, size_t master_row, struct node *promoted)
{
    const struct finder *master = master_row < replica_poll_topology_of(poll)->n_rows
                                      ? replica_poll_finder_at(poll, master_row)
                                      : NULL;
    if (master != NULL)
        node_ask(finder_node(master));
    if (promoted != NULL)
        node_ask(promoted);
}

static bool replica_poll_ask(struct finder *finder, const struct control_question *question)
{
    static const struct slice words[] = {SLICE("INFO"), SLICE("replication")};
    return finder_ask(finder, words, 2, question);
}

/* Reads the answer. False: the node reports no offsets. */
static bool replica_poll_read_word(struct slice frame, struct offsets_word *word)
{
    struct slice text;
    return control_judge_text(frame, &text) == CONTROL_GOOD && offsets_read(text, word);
}

static void on_reached(void *arg, struct node *node, struct slice frame, uint64_t asked_ns)
{
    const struct replica_poll *poll = arg;
    size_t master;
    struct offsets_word word;
    struct node *replica = replica_of(poll, node, &master);
    (void)asked_ns;
    if (replica == NULL)
        return;
    bool is_said = replica_poll_read_word(frame, &word);
    if (is_said && word.role == ROLE_MASTER) {
        ask_roles(poll, master, replica);
        return;
    }
    const struct offsets *offsets = &poll->shards[master].offsets;
    uint64_t as_of_ns = is_said ? offsets_as_of(offsets, &word) : 0;
    reach_note(&replica->reach, as_of_ns, is_said ? offsets_behind(offsets, &word) : 0);
}

/*
 * Asks a replica. If the last question is unanswered after half a poll interval the replica's reach
 * ends. A round that a worker wants may begin much sooner after the last question.
 */
static void ask_replica(struct replica_poll *poll, struct finder *finder)
{
    const struct control_question question = {on_reached, poll, "INFO replication"};
    struct reach *reach = &finder_node(finder)->reach;
    uint64_t now_ns = clock_ns();
    if (replica_poll_ask(finder, &question))
        reach->asked_ns = now_ns;
    else if (now_ns - reach->asked_ns >= poll->upstream->reads.poll_ns / 2)
        reach_end(reach);
}

static void ask_replicas_of(struct replica_poll *poll, size_t master)
{
    for (size_t row = 0; row < replica_poll_topology_of(poll)->n_rows; row++)
        if (row != master && replica_poll_topology_of(poll)->rows[row].master == master)
            ask_replica(poll, replica_poll_finder_at(poll, row));
}

static void ask_replicas(struct replica_poll *poll)
{
    for (size_t master = 0; master < poll->n_shards; master++)
        ask_replicas_of(poll, master);
}

static void replica_poll_on_told(void *arg, struct node *node, struct slice frame,
                                 uint64_t asked_ns)
{
    struct replica_poll *poll = arg;
    struct offsets_word word;
    size_t row = 0;
    while (row < poll->n_shards && poll->shards[row].master != node)
        row++;
    if (row == poll->n_shards || !replica_poll_read_word(frame, &word))
        return;
    if (word.role == ROLE_REPLICA) {
        ask_roles(poll, row, NULL);
        return;
    }
    offsets_note(&poll->shards[row].offsets, &word, asked_ns);
    ask_replicas_of(poll, row);
}

/* ---- rounds ---- */

static void add_shard(struct replica_poll *poll)
{
    poll->shards = mem_realloc(poll->shards, poll->n_shards + 1, sizeof *poll->shards);
    poll->shards[poll->n_shards++] = (struct shard){.master = NULL};
}

/* Forgets the offsets of the previous master when the master changes. */
static void note_master(struct replica_poll *poll, size_t master_row, const struct node *master)
{
    while (poll->n_shards <= master_row)
        add_shard(poll);
    struct shard *shard = &poll->shards[master_row];
    if (master == shard->master)
        return;
    shard->master = master;
    offsets_forget(&shard->offsets);
    for (size_t row = 0; row < replica_poll_topology_of(poll)->n_rows; row++)
        if (replica_poll_finder_at(poll, row) != NULL &&
            replica_poll_topology_of(poll)->rows[row].master == master_row)
            reach_end(&finder_node(replica_poll_finder_at(poll, row))->reach);
}

/*
 * Begins a round. If a master cannot be asked, its replicas are asked at once. Their answers are
 * then compared with the master's earlier offsets, so the state of the replicas counts as older.
 */
static void replica_poll_begin(struct replica_poll *poll)
{
    const struct control_question question = {replica_poll_on_told, poll, "INFO replication"};
    poll->began_ns = clock_ns();
    for (size_t row = 0; row < replica_poll_topology_of(poll)->n_rows; row++) {
        struct finder *master = replica_poll_finder_at(poll, row);
        if (replica_poll_topology_of(poll)->rows[row].master != row)
            continue;
        note_master(poll, row, master != NULL ? finder_node(master) : NULL);
        if (master == NULL || !replica_poll_ask(master, &question))
            ask_replicas_of(poll, row);
    }
}

static void replica_poll_on_timer(uv_timer_t *timer)
{
    replica_poll_begin(timer->data);
}

/*
 * Asks replicas again: a replica that lacked the master's offset reaches that offset a moment
 * later.
 */
static void replica_poll_on_again(uv_timer_t *timer)
{
    struct replica_poll *poll = timer->data;
    ask_replicas(poll);
    if (clock_ns() >= poll->wanted_ns + AGAIN_NS)
        uv_timer_stop(timer);
}

static void on_wanted(uv_async_t *async)
{
    struct replica_poll *poll = async->data;
    uint64_t now_ns = clock_ns();
    poll->wanted_ns = now_ns;
    if (now_ns >= poll->began_ns + HURRY_NS)
        replica_poll_begin(poll);
    uv_timer_start(&poll->again, replica_poll_on_again, AGAIN_MS, AGAIN_MS);
}

/* ---- the life of the poll ---- */

struct replica_poll *replica_poll_open(const struct controls *controls)
{
    struct replica_poll *poll = mem_zalloc(1, sizeof *poll);
    struct loop *loop = controls->loop;
    uint64_t every_ms = controls->upstream->reads.poll_ns / NS_PER_MS;
    poll->upstream = controls->upstream;
    poll->controls = controls;
    poll->n_handles = HANDLES;
    uv_timer_init(&loop->uv, &poll->timer);
    uv_timer_init(&loop->uv, &poll->again);
    uv_async_init(&loop->uv, &poll->wanted, on_wanted);
    poll->timer.data = poll->again.data = poll->wanted.data = poll;
    uv_timer_start(&poll->timer, replica_poll_on_timer, every_ms, every_ms);
    upstream_set_poll(poll->upstream, &poll->wanted);
    return poll;
}

static void replica_poll_on_closed(uv_handle_t *handle)
{
    struct replica_poll *poll = handle->data;
    if (--poll->n_handles > 0)
        return;
    free(poll->shards);
    free(poll);
}

void replica_poll_close(struct replica_poll *poll)
{
    upstream_set_poll(poll->upstream, NULL);
    uv_close((uv_handle_t *)&poll->timer, replica_poll_on_closed);
    uv_close((uv_handle_t *)&poll->again, replica_poll_on_closed);
    uv_close((uv_handle_t *)&poll->wanted, replica_poll_on_closed);
}
