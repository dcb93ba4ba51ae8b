/*
 * What weir knows of a cluster, and which of its nodes are members (run/topology/members.h).
 *
 * Members are the entry points, as configured, and from the first answer on each master that serves
 * slots, by the address that it announces; its replicas too, where clients read there. Other nodes
 * are not dialled. One member at a time is asked CLUSTER NODES, at the pace of
 * run/topology/question_pace.h, in the order of run/topology/cluster_view.h, which says which of
 * their answers count; a member that is silent for 300 ms has the next one asked. An entry point
 * stays a member whatever is answered, and is asked when nothing else can be.
 *
 * What is dialled: the digits that a node announces; over TLS, or where there are no digits, the host name that it
 * announces; where it announces neither, and is the node that was asked, the host that was asked. upstream-map and
 * upstream-allow apply as everywhere (run/topology/finder.h). A redirect is never dialled: it has a question asked.
 * Main thread.
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
    /* An answer has come, or was not to be had. Never from within a call of this header. */
    void (*on_answer)(void *arg);
    /* As finder_ops.on_news. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

/* The members, which are the entry points as yet, outlive it. Out of memory ends the process. */
struct cluster *cluster_open(struct loop *loop, struct upstream *upstream, struct members *members,
                             const struct cluster_ops *ops, void *arg);

/* Begin to ask: ops are called from now on. */
void cluster_start(struct cluster *cluster);

/* There is a reason to ask: a redirect, a lost connection. */
void cluster_want(struct cluster *cluster);

/* The member has connected, or lost its connection, or has another node. */
void cluster_note_member(struct cluster *cluster, const struct member *member);

/*
 * Members are from now on those that the cluster consists of: new ones are added, and is_leaving is set of those that
 * are to be dropped, once the topology has no row of theirs. `now` is the topology that workers have.
 */
void cluster_sort_members(struct cluster *cluster, const struct topology *now);

/* The member is dropped. */
void cluster_forget(struct cluster *cluster, const struct member *member);

const struct cluster_view *cluster_known(const struct cluster *cluster);

/* The member of the node of this number in the view, as it was sorted last; NULL: it is none. */
struct member *cluster_member(const struct cluster *cluster, size_t number);

/* True if clients may read there: a replica of a master that serves slots. */
bool cluster_reads(const struct cluster *cluster, const struct cluster_view_node *node);

/* Clients' commands for this slot are sent there now, as a node has said by MOVED. */
void cluster_note_redirect(struct cluster *cluster, uint16_t slot, struct slice host, uint16_t port);

/* True if a node has answered, or each member has been tried in vain. */
bool cluster_is_settled(const struct cluster *cluster);

#define CLUSTER_WORDS_ROOM 480

/* How many slots have a master, and how many of these have one that can be reached. */
struct cluster_service {
    size_t n_masters;
    size_t n_served, n_up; /* slots */
};

struct cluster_service cluster_words_look(const struct cluster *cluster);

/*
 * "3 masters serve all 16384 slots"; "5461 slots are away: 10.0.0.3:7000"; "no node has told which nodes there are:
 * ...". True: every slot is served by a master that can be reached.
 */
bool cluster_words_print(const struct cluster *cluster, char out[CLUSTER_WORDS_ROOM]);

/* Asynchronous; frees itself. No callback comes after it. Members stay. */
void cluster_close(struct cluster *cluster);

#endif
