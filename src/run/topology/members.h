/*
 * The servers of which the upstream may consist: for each a finder (run/topology/finder.h), and what weir has learnt
 * on it.
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
    char key[ADDRESS_TEXT];      /* its address as configured, or as sentinels announce it; no two are the same */
    struct address address;      /* where that is dialled; its own copy */
    struct command_table *table; /* the last that its server has told; one reference; NULL: none */
    bool is_settled;             /* the first attempt is over, however it went */
    bool is_leaving;             /* it is to be dropped, as its owner says */
    struct finder_word word;     /* as its finder has said it last */
    bool is_entry;               /* of a cluster: an entry point, as configured */
    bool has_told;               /* of a cluster: it has answered CLUSTER NODES, or was silent */
    bool is_mute;                /* of a cluster: it has not answered the last such question in time */
    char node_id[CLUSTER_ID];    /* of a cluster: its node's name, as it has told last; "": it has not */
    char nodes_why[160];         /* why that answer does not count; "": it does, or there was none */
    uint64_t changed_ns;         /* when its role changed last, or whether it can be reached; 0: never */
};

struct members {
    struct loop *loop;
    struct finder_settings settings; /* but for the address */
    const struct finder_ops *ops;    /* of each finder, with the member as argument */
    void *arg;                       /* the owner's */
    struct member **all;             /* in the order in which they came; heap, and each of them too */
    size_t n;
    bool is_started, probes;
};

/*
 * The settings' parts and ops outlive the members. What ops hear is to be noted first (member_take_table,
 * member_note_word). No member is to be dropped from within one.
 */
void members_init(struct members *members, struct loop *loop, const struct finder_settings *settings,
                  const struct finder_ops *ops, void *arg);
void members_fini(struct members *members);

/* One more; once members have been started it begins to look at once. Out of memory ends the process. */
struct member *members_add(struct members *members, const char *key, const struct address *dialled);

/* Its finder is closed, and calls nothing any more. */
void members_drop(struct members *members, struct member *member);

/* NULL: there is none of this key. Safe on NULL. */
struct member *members_find(const struct members *members, const char *key);

/* For finder_ops.on_table and on_word. `table` is kept, with its reference. */
void member_take_table(struct member *member, struct command_table *table);
void member_note_word(struct member *member);

/* As finder_start, finder_probe, finder_set_password, finder_look and finder_ask_role, for each. */
void members_start(struct members *members);
void members_probe(struct members *members);
void members_set_password(struct members *members, const struct credentials *credentials);
void members_look(const struct members *members);
void members_ask_roles(const struct members *members);

/* True if the first attempt is over for each. */
bool members_are_settled(const struct members *members);

#endif
