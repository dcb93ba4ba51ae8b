/*
 * What the files of run/topology/controls.h share: controls.c wires, controls_home.c chooses the master of a
 * replicated upstream, controls_cluster.c follows a cluster; the polls (cost_poll.c, replica_poll.c) only read it. Main
 * thread.
 */
#ifndef WEIR_RUN_CONTROLS_STATE_H
#define WEIR_RUN_CONTROLS_STATE_H

#include <stdbool.h>
#include <uv.h>

#include "run/topology/cluster.h"
#include "run/topology/failover_story.h"
#include "run/topology/mastership.h"
#include "run/topology/members.h"
#include "run/topology/sentinels.h"
#include "upstream/node/topology.h"

#define SOURCES_TEXT 1024
#define STORY_NS NS_PER_S /* a failover is told so long after it, when commands that waited have been sent */

#define SHARD_STORIES 16 /* at a time (chosen): of more shards that are lost together the first ones are told of */

/*
 * Failovers of the shards of a cluster. A story begins when the connection to a master is lost, and is bound to a slot
 * that the master serves: the node that serves the slot afterwards is the end of it. A slot that is moved from a master
 * that is there is no failover. What is counted meanwhile is of all shards.
 */
struct shard_story {
    struct failover_story story;
    uint16_t slot;
};

/* Zeroed: nothing has been seen. */
struct shard_stories {
    struct shard_story all[SHARD_STORIES];
    struct fates rest; /* of the last shard_stories_tell: what is counted in a story begins here */
};

#define CHOICE_TEXT 400

/* Which member is the master of a replicated upstream. */
struct choice {
    enum mastership_form form;
    char named[ADDRESS_TEXT];      /* key of the member that is the master, or is expected to say so; "": none */
    struct member *home;           /* NULL: none is, for now */
    struct member *asked;          /* is to be asked at once what it is; NULL: none */
    struct mastership_choice made; /* its texts are not to be read */
    char text[CHOICE_TEXT];        /* why none is, for people; "": one is */
};

struct controls_ops;

enum controls_timer { CHOOSE, POLL, CONTROLS_TIMERS };

struct controls {
    uv_async_t asked; /* node_ask of some node */
    uv_timer_t timers[CONTROLS_TIMERS];
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
    struct shard_stories shards; /* of a cluster */
    struct replica_poll *poll;   /* NULL: no replica is read from */
    struct cost_poll *costs;
    bool is_started, is_settled;
};

/* The member in row 0; NULL: its node stands for a master that there is not. */
static inline struct member *controls_home(const struct controls *controls)
{
    return controls->rows[TOPOLOGY_HOME];
}

/* ---- controls.c ---- */

/* Choose, or follow the cluster, later: within a call of its finder a member is not to be given up. */
void controls_choose_soon(struct controls *controls);

/* The node of row 0 for this home. Without one it has no address, and stays the same. One reference, for the caller. */
struct node *controls_home_node(const struct controls *controls, const struct member *home);

/* The topology is this one from now on; `rows`, the members of its rows, and the topology are controls'. */
void controls_set_topology(struct controls *controls, struct topology *topology, struct member **rows);

void controls_sum_maxclients(const struct controls *controls);
void controls_hand_table(const struct controls *controls, const struct member *member);
void controls_settle(struct controls *controls);

/* As controls_ops.on_news; `arg` is the controls. */
void controls_tell(void *arg, enum log_level level, const char *about, const char *line);
void controls_drop_leaving(struct controls *controls);

/* ---- controls_home.c ---- */

/* The home is this member from now on, or none. Its node, or other rows, may be others. */
void controls_publish_home(struct controls *controls, struct member *home);

void controls_choose_home(struct controls *controls);
void controls_tell_story(struct controls *controls, uint64_t now_ns);

/* ---- controls_cluster.c ---- */

void controls_open_cluster(struct controls *controls);

/* Members have been heard, or lost. */
void controls_follow_cluster(struct controls *controls);

/* Ask these, too: controls_list_nodes of the weir that this one replaces. */
void controls_add_nodes(struct controls *controls, const char *nodes);

/* Tell failovers of shards. */
void controls_tell_shards(struct controls *controls, uint64_t now_ns);

#endif
