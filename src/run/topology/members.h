/*
 * Members: the servers that the upstream may consist of. Each member has a finder
 * (run/topology/finder.h) and a state.
 *
 * A member stays until members_drop; its node may be replaced meanwhile. Main thread.
 */
#ifndef WEIR_RUN_MEMBERS_H
#define WEIR_RUN_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "run/topology/finder.h"
#include "upstream/node/cluster_nodes.h"

struct members;

struct member {
    struct members *members;
    struct finder *finder;
    /* the server's address as configured, or as announced by sentinels; unique */
    char key[ADDRESS_TEXT];
    struct address address;      /* the dialled address; a copy owned by the member */
    struct command_table *table; /* the last table of its server; one reference; NULL: none */
    bool is_settled;             /* the first attempt is over, with or without success */
    bool is_leaving;             /* to be dropped; set by the owner */
    struct finder_word word;     /* the last report of its finder */
    bool is_entry;               /* for a cluster: a configured entry point */
    /* for a cluster: the member has answered CLUSTER NODES, or was silent */
    bool has_told;
    bool is_mute;             /* for a cluster: the last CLUSTER NODES has timed out */
    char node_id[CLUSTER_ID]; /* for a cluster: the node's id by the last answer; "": none */
    /* why the last answer to CLUSTER NODES does not count; "": it counts, or there was no answer */
    char nodes_why[160];
    uint64_t changed_ns; /* when the server's role or reachability changed last; 0: never */
};

struct members {
    struct loop *loop;
    struct finder_settings settings; /* without the address */
    const struct finder_ops *ops;    /* of each finder, with the member as argument */
    void *arg;                       /* argument of the owner */
    /* in the order of adding; the array and each member are heap */
    struct member **all;
    size_t n;
    bool is_started, probes;
};

/*
 * The parts of the settings and ops must outlive the members. on_table must first call
 * member_take_table, and on_word member_note_word. No member may be dropped from within ops.
 */
void members_init(struct members *members, struct loop *loop,
                  const struct finder_settings *settings, const struct finder_ops *ops, void *arg);
void members_fini(struct members *members);

/*
 * Adds a member, which begins to connect if members have been started. Out of memory ends the
 * process.
 */
struct member *members_add(struct members *members, const char *key, const struct address *dialled);

/* Drops the member and closes its finder, which makes no more calls. */
void members_drop(struct members *members, struct member *member);

/* Returns the member with this key; NULL: none. `key` may be NULL. */
struct member *members_find(const struct members *members, const char *key);

/* For finder_ops.on_table. `table` is taken over with its reference. */
void member_take_table(struct member *member, struct command_table *table);

/* For finder_ops.on_word. */
void member_note_word(struct member *member);

/* Calls finder_start for each member, now or when the member is added. */
void members_start(struct members *members);

/* Calls finder_probe for each member, now or when the member is added. */
void members_probe(struct members *members);

/* Calls finder_set_password for each member. */
void members_set_password(struct members *members, const struct credentials *credentials);

/* Calls finder_look for each member. */
void members_look(const struct members *members);

/* Calls finder_ask_role for each member. */
void members_ask_roles(const struct members *members);

/* True if the first attempt of each member is over. */
bool members_are_settled(const struct members *members);

#endif
