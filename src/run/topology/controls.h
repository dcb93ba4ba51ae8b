/*
 * The main thread's connections to the servers of the upstream (run/topology/members.h), and what follows from what
 * these say: which of them the topology consists of.
 *
 * One server under `upstream` is the home node whatever it says. Of several, configured or told of
 * by sentinels (run/topology/sentinels.h), the home node is the master, as
 * run/topology/controls_home.h chooses it; while there is none, it is a node without an address,
 * for which clients wait as for one that is away. Main thread.
 */
#ifndef WEIR_RUN_CONTROLS_H
#define WEIR_RUN_CONTROLS_H

#include <stdbool.h>
#include <stddef.h>

#include "run/topology/cluster.h"
#include "run/config/config_sources.h"
#include "run/topology/failover_story.h"
#include "run/topology/finder.h"
#include "upstream/control.h"
#include "upstream/node/topology.h"

struct controls;

struct controls_ops {
    /* Which nodes there are has changed: controls_topology. */
    void (*on_topology)(void *arg);
    /* The home node's own command table, which serves for all; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The first attempt is over for every node, however it went. */
    void (*on_settled)(void *arg);
    /* What a node does has changed; the line says how, for people. `about` is the same each time that is the same. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
    /* What became of clients' requests so far. */
    void (*sum_fates)(void *arg, struct fates *sum);
};

struct controls_settings {
    struct finder_settings finder; /* but for address, kind and kin */
    const struct sources *sources;
    const char *sentinel_user;          /* NULL: only a password */
    const char *sentinel_password_path; /* of the file that has it; NULL: none */
    const char *nodes;                  /* controls_list_nodes of the weir that this one replaces; NULL: of none */
};

/* The settings' parts and ops outlive it. Out of memory ends the process. */
struct controls *controls_open(struct loop *loop, const struct controls_settings *settings,
                               const struct controls_ops *ops, void *arg);

/* Begin to look: ops are called from now on. */
void controls_start(struct controls *controls);

/* The nodes as they are now; one reference, for the caller. */
struct topology *controls_topology(const struct controls *controls);

#define NODES_LISTED 4096

/*
 * The masters of a cluster that are known, as text for the weir that replaces this one: it may ask them where no
 * entry point answers, if it has been configured with the same ones. "" for any other upstream.
 */
void controls_list_nodes(const struct controls *controls, char out[NODES_LISTED]);

/* A probe of each node from now on. */
void controls_probe(struct controls *controls);

/* For when they log in next. What it points to stays until the next call. The sentinels' password is read again, too. */
void controls_set_password(struct controls *controls, const struct credentials *credentials);

/* Ask what commands cost from now on, into this table, and how far nodes are: run/topology/cost_poll.h. NULL: do not. */
void controls_ask_costs(const struct controls *controls, struct command_table *table);

/* True if the control lane of the home node has greeted it, and not lost it since. */
bool controls_is_up(const struct controls *controls);

/* As control_why, and control_silence_ns, of the home node. */
const char *controls_why(const struct controls *controls);
uint64_t controls_silence_ns(const struct controls *controls, uint64_t now_ns);

/* For its name and addresses. NULL: the node of this row stands for a master that there is not. */
const struct finder *controls_finder(const struct controls *controls, size_t row);

/* True if several servers may be the upstream, of which one at a time is the master. */
bool controls_are_replicated(const struct controls *controls);

/* What the upstream is, for people: a cluster as configured, else the home node. Good until the loop goes on. */
const char *controls_text(const struct controls *controls);

/* NULL: the upstream is none. */
const struct cluster *controls_cluster(const struct controls *controls);

#define CONTROLS_NO_ROW SIZE_MAX

/* One of the servers, for people; good until the loop goes on. */
struct controls_server {
    const char *key; /* its address as configured, or as sentinels announce it; no two are the same */
    const struct finder *finder;
    size_t row;          /* of the topology; CONTROLS_NO_ROW: nothing is sent there */
    uint64_t epoch;      /* of the master, by the sentinels; else 0 */
    uint64_t changed_ns; /* when its role changed last, or whether it can be reached, or is the home; 0: never */
};

/* Server `i`, whether it has a row or not. False: there are no more. */
bool controls_server(const struct controls *controls, size_t i, struct controls_server *out);

/* Why none of the servers is the home node, for people; "": one is. Good until the loop goes on. */
const char *controls_why_no_master(const struct controls *controls);

/* Asynchronous; frees itself. No callback comes after it. */
void controls_close(struct controls *controls);

#endif
