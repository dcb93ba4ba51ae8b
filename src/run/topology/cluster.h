/*
 * The state of a Redis Cluster, and which of its nodes are members (run/topology/members.h).
 *
 * Members are the configured entry points. From the first answer on, each master that serves slots
 * is a member, by the address that the master announces. Its replicas are members if clients read
 * from replicas. Other nodes are not dialled. An entry point always stays a member, and is asked
 * when no other member can be asked.
 *
 * One member at a time is asked CLUSTER NODES. run/topology/question_pace.h sets the pace.
 * run/topology/cluster_view.h sets the order, and decides which answers count. When a member is
 * silent for 300 ms the next member is asked.
 *
 * The dialled address is the IP address that a node announces. Over TLS, or without an IP address,
 * weir dials the announced host name. If the node that was asked announces neither address nor
 * name, weir dials the host that was asked. upstream-map and upstream-allow apply to each of these
 * addresses (run/config/dialling.h). A redirect is never dialled: it triggers a question. Main
 * thread.
 */
#ifndef WEIR_RUN_CLUSTER_H
#define WEIR_RUN_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/topology/cluster_view.h"
#include "run/topology/members.h"
#include "upstream/node/topology.h"

struct cluster;

struct cluster_ops {
    /* A question is about to be sent: cluster_note_redirect may be called. */
    void (*on_question)(void *arg);
    /*
     * An answer has come, or a question has failed. Never called from within a function of this
     * header.
     */
    void (*on_answer)(void *arg);
    /* As finder_ops.on_news. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

/*
 * The members, only the entry points so far, must outlive the cluster. Out of memory ends the
 * process.
 */
struct cluster *cluster_open(struct loop *loop, struct upstream *upstream, struct members *members,
                             const struct cluster_ops *ops, void *arg);

/* Begins to ask: ops are called from now on. */
void cluster_start(struct cluster *cluster);

/* Asks soon, after a redirect or a lost connection. */
void cluster_want(struct cluster *cluster);

/* To be called when the member has connected, lost its connection, or has another node. */
void cluster_note_member(struct cluster *cluster, const struct member *member);

/*
 * Brings the members in line with the view. Adds new members, and sets is_leaving of members that
 * no node in use and no row of the topology needs any more. Entry points never leave. `now`: the
 * topology that workers have.
 */
void cluster_sort_members(struct cluster *cluster, const struct topology *now);

/* Forgets the member, which the owner drops. */
void cluster_forget(struct cluster *cluster, const struct member *member);

const struct cluster_view *cluster_known(const struct cluster *cluster);

/* Returns the member of this node of the view, as of the last cluster_sort_members. NULL: none. */
struct member *cluster_member(const struct cluster *cluster, size_t number);

/* True if clients may read from the node: a replica of a master that serves slots. */
bool cluster_reads(const struct cluster *cluster, const struct cluster_view_node *node);

/* Notes that workers send commands for this slot to host:port, because of a MOVED. */
void cluster_note_redirect(struct cluster *cluster, uint16_t slot, struct slice host,
                           uint16_t port);

/* True if a node has answered, or every member has been tried without success. */
bool cluster_is_settled(const struct cluster *cluster);

#define CLUSTER_WORDS_ROOM 480

/* The number of masters, of slots with a master, and of slots with a reachable master. */
struct cluster_service {
    size_t n_masters;
    size_t n_served, n_up; /* slots */
};

struct cluster_service cluster_words_look(const struct cluster *cluster);

/*
 * Prints "3 masters serve all 16384 slots", "5461 of 16384 slots are served; ..." or "no node has
 * told which nodes there are: ...". True if every slot has a reachable master.
 */
bool cluster_words_print(const struct cluster *cluster, char out[CLUSTER_WORDS_ROOM]);

/* Asynchronous; frees itself. No callback comes after this call. Members stay. */
void cluster_close(struct cluster *cluster);

#endif
