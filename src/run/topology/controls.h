/*
 * The main thread's connections to the servers of the upstream (run/topology/members.h), and the
 * topology that follows from the servers' answers.
 *
 * If `upstream` has one server, that server is always the default node. With several servers,
 * configured or named by sentinels (run/topology/sentinels.h), the default node is the master, as
 * run/topology/controls_default.c chooses it. Without a master the default node has no address;
 * clients wait as for a node that is down. Main thread.
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
    /* The topology has changed; controls_topology returns the new topology. */
    void (*on_topology)(void *arg);
    /*
     * The default node's command table, which serves for all nodes; the receiver owns the
     * reference.
     */
    void (*on_table)(void *arg, struct command_table *table);
    /* The first attempt of every node is over, with or without success. */
    void (*on_settled)(void *arg);
    /*
     * The state of a node has changed. `line`: the words for people. `about`: equal for equal
     * changes.
     */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
    /* Adds the counters of the fates of clients' requests so far (failover_story.h). */
    void (*sum_fates)(void *arg, struct fates *sum);
};

struct controls_settings {
    struct finder_settings finder; /* address, kind and kin are not read */
    const struct sources *sources;
    const char *sentinel_user;          /* NULL: only a password */
    const char *sentinel_password_path; /* path of the password file; NULL: none */
    /* controls_list_nodes of the predecessor; NULL: no predecessor */
    const char *nodes;
};

/* The parts of the settings and ops must outlive the controls. Out of memory ends the process. */
struct controls *controls_open(struct loop *loop, const struct controls_settings *settings,
                               const struct controls_ops *ops, void *arg);

/* Begins to connect: ops are called from now on. */
void controls_start(struct controls *controls);

/* Returns the present topology; one reference, for the caller. */
struct topology *controls_topology(const struct controls *controls);

#define NODES_LISTED 4096

/*
 * Writes the known masters of a cluster as text for a successor with equal entry points. The
 * successor may ask these masters when no entry point answers. "" for any other upstream.
 */
void controls_list_nodes(const struct controls *controls, char out[NODES_LISTED]);

/* Begins to probe each node (finder_probe). */
void controls_probe(struct controls *controls);

/*
 * Sets the credentials of the next login. The strings must stay valid until the next call. The
 * sentinels' password is read again, too.
 */
void controls_set_password(struct controls *controls, const struct credentials *credentials);

/*
 * Begins to poll for command costs, which are written into this table, and for round trips
 * (run/topology/cost_poll.h). NULL: stops.
 */
void controls_ask_costs(const struct controls *controls, struct command_table *table);

/* True if the control lane of the default node is greeted and connected. */
bool controls_is_up(const struct controls *controls);

/* As control_why, for the default node. */
const char *controls_why(const struct controls *controls);

/* As control_silence_ns, for the default node. */
uint64_t controls_silence_ns(const struct controls *controls, uint64_t now_ns);

/* Returns the finder of a row. NULL: the node of this row stands for a missing master. */
const struct finder *controls_finder(const struct controls *controls, size_t row);

/* True if there may be several servers, with one master at a time. */
bool controls_are_replicated(const struct controls *controls);

/*
 * Returns the upstream in words: a cluster as configured, else the default node. Valid for this
 * iteration.
 */
const char *controls_text(const struct controls *controls);

/* Returns the cluster; NULL: the upstream is no cluster. */
const struct cluster *controls_cluster(const struct controls *controls);

#define CONTROLS_NO_ROW SIZE_MAX

/* One of the servers, for reports to operators; valid for this iteration. */
struct controls_server {
    const char *key; /* the server's address as configured, or as announced by sentinels; unique */
    const struct finder *finder;
    size_t row;     /* row of the topology; CONTROLS_NO_ROW: no requests go to the server */
    uint64_t epoch; /* epoch of the master, by the sentinels; else 0 */
    /*
     * when the server's role or reachability changed last, or the server became the default node;
     * 0: never
     */
    uint64_t changed_ns;
};

/* Sets *out to server `i`, with or without a row. False: there is no server `i`. */
bool controls_server(const struct controls *controls, size_t i, struct controls_server *out);

/* Returns why no server is the default node; "": some server is. Valid for this iteration. */
const char *controls_why_no_master(const struct controls *controls);

/* Asynchronous; frees itself. No callback comes after this call. */
void controls_close(struct controls *controls);

#endif
