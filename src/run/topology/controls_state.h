/*
 * The state shared by the files of run/topology/controls.h. controls.c connects the parts,
 * controls_default.c chooses the master of a replicated upstream, controls_cluster.c follows a
 * cluster. The polls (cost_poll.c, replica_poll.c) only read. Main thread.
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
/* a failover is logged this long after its end, when waiting commands have been sent */
#define STORY_NS NS_PER_S

/* stories at a time (chosen): if more shards are lost together, only the first are logged */
#define SHARD_STORIES 16

/*
 * Failovers of the shards of a cluster. A story begins when the connection to a master is lost, and
 * remembers a slot of that master. The story ends when a reachable node serves the slot.
 * Moving a slot from a reachable master is no failover. The counters of a story include all shards.
 */
struct shard_story {
    struct failover_story story;
    uint16_t slot;
};

/* Zeroed: no failovers so far. */
struct shard_stories {
    struct shard_story all[SHARD_STORIES];
    struct fates rest; /* counters at the last shard_stories_tell: a new story counts from these */
};

#define CHOICE_TEXT 400

/* The chosen master of a replicated upstream. */
struct choice {
    enum mastership_form form;
    /* key of the member that is the master, or is expected to report this role; "": none */
    char named[ADDRESS_TEXT];
    struct member *default_node;   /* NULL: no master now */
    struct member *asked;          /* to be asked for its role at once; NULL: none */
    struct mastership_choice made; /* the result of the last choice; its texts are not valid */
    char text[CHOICE_TEXT];        /* why there is no master, for people; "": there is a master */
};

struct controls_ops;

enum controls_timer { CHOOSE, POLL, CONTROLS_TIMERS };

struct controls {
    uv_async_t asked; /* sent by node_ask */
    uv_timer_t timers[CONTROLS_TIMERS];
    unsigned n_handles; /* handles that are not closed yet */
    struct loop *loop;
    struct upstream *upstream;
    const struct controls_ops *ops;
    void *arg;
    bool is_replicated;      /* there may be several servers, with one master at a time */
    char text[SOURCES_TEXT]; /* the servers as configured, for the log */
    struct members members;
    struct sentinels *sentinels;           /* NULL: the servers are configured */
    struct cluster *cluster;               /* NULL: the upstream is no cluster */
    char cluster_text[CLUSTER_WORDS_ROOM]; /* the last log line about the served slots */
    /* for a cluster: row of each slot, as last reported to the view */
    uint16_t told[SLOT_COUNT];
    struct node *kin;          /* all nodes share the struct contention of this node */
    struct topology *topology; /* one reference */
    /* members of the topology's nodes; NULL for a missing master; heap */
    struct member **rows;
    unsigned n_polls;
    uint64_t asked_ns; /* when a member was last asked for its role beside the polls */
    struct choice choice;
    struct failover_story story;
    struct shard_stories shards; /* for a cluster */
    struct replica_poll *poll;   /* NULL: no replica is read from */
    struct cost_poll *costs;
    bool is_started, is_settled;
};

/* Returns the member in row 0; NULL: the row stands for a missing master. */
static inline struct member *controls_default(const struct controls *controls)
{
    return controls->rows[TOPOLOGY_DEFAULT];
}

/* ---- controls.c ---- */

/*
 * Chooses the master, or follows the cluster, in a later iteration: a member may not be given up in
 * a callback of its finder.
 */
void controls_choose_soon(struct controls *controls);

/*
 * Returns the node of row 0 for this member. NULL: a node without an address, kept while there is
 * no master. One reference, for the caller.
 */
struct node *controls_default_node(const struct controls *controls,
                                   const struct member *default_node);

/* Installs the topology. Takes over `topology` and `rows`, the members of its rows. */
void controls_set_topology(struct controls *controls, struct topology *topology,
                           struct member **rows);

void controls_sum_maxclients(const struct controls *controls);
void controls_hand_table(const struct controls *controls, const struct member *member);
void controls_settle(struct controls *controls);

/* As controls_ops.on_news; `arg` is the controls. */
void controls_tell(void *arg, enum log_level level, const char *about, const char *line);
void controls_drop_leaving(struct controls *controls);

/* ---- controls_default.c ---- */

/*
 * Makes this member the default node (NULL: no member), and publishes the topology if the default
 * node or a row has changed.
 */
void controls_publish_default_node(struct controls *controls, struct member *default_node);

void controls_choose_default_node(struct controls *controls);
void controls_tell_story(struct controls *controls, uint64_t now_ns);

/* ---- controls_cluster.c ---- */

void controls_open_cluster(struct controls *controls);

/* To be called when members have answered, or were lost. */
void controls_follow_cluster(struct controls *controls);

/* Adds members from controls_list_nodes of the predecessor. */
void controls_add_nodes(struct controls *controls, const char *nodes);

/* Logs the failovers of shards that are over. */
void controls_tell_shards(struct controls *controls, uint64_t now_ns);

#endif
