/*
 * Finds the node behind one address of `upstream`, and keeps the main thread's connections to the
 * node. One is a control lane (upstream/control.h). The other, once clients are served, is a probe
 * that checks whether connections without a login are served (upstream/login/auth_probe.h).
 *
 * A name is looked up at the start, after a lost or refused connection, after node_ask, and every
 * upstream-resolve. The address in use stays in use while the name still leads to it. If the name
 * leads elsewhere, or the address cannot be connected to, all addresses are dialled in order. The
 * next address is dialled at once after a refusal, or after 250 ms of silence. The first address
 * that answers becomes the node. A master that has become a replica is given up by these steps,
 * too.
 *
 * The finder of one server among several (FINDER_MEMBER) reports the role of its server. The
 * finder's owner decides about a change of role. Main thread.
 */
#ifndef WEIR_RUN_FINDER_H
#define WEIR_RUN_FINDER_H

#include <stdbool.h>

#include "net/resolver.h"
#include "run/config/address.h"
#include "run/config/dialling.h"
#include "upstream/control.h"

struct finder;

struct finder_ops {
    /* finder_node has changed. */
    void (*on_node)(void *arg);
    /* The node's command table; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The node answers, but cannot be used. */
    void (*on_rejected)(void *arg, const char *why);
    /* node->maxclients has been set. */
    void (*on_maxclients)(void *arg);
    /* finder_word may have changed: the node has reported its role, or a connection has failed. */
    void (*on_word)(void *arg);
    /* The first attempt is over, with or without success. */
    void (*on_settled)(void *arg);
    /* A change for the log. `line`: the words for people. `about`: equal for equal changes. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

enum finder_kind {
    FINDER_ALONE,  /* the finder's server is the whole upstream */
    FINDER_MEMBER, /* one of several servers, with one master at a time */
};

struct finder_settings {
    struct upstream *upstream; /* must outlive the finder */
    enum finder_kind kind;
    /* all nodes share the struct contention of this node; must outlive the finder; NULL: none */
    const struct node *kin;
    const struct address *address;   /* must outlive the finder */
    const struct dialling *dialling; /* where weir may connect; must outlive the finder */
    uint64_t resolve_ns;             /* interval of lookups; 0: only after an event */
    /* the user must outlive the finder; the passwords are copied */
    struct credentials credentials;
};

/* Out of memory ends the process. */
struct finder *finder_open(struct loop *loop, const struct finder_settings *settings,
                           const struct finder_ops *ops, void *arg);

/* Begins to connect: ops are called from now on. */
void finder_start(struct finder *finder);

/* Begins to probe whether the node serves connections without a login. */
void finder_probe(struct finder *finder);

/* As control_set_password. */
void finder_set_password(struct finder *finder, const struct credentials *credentials);

/*
 * Returns the node, without a reference. The node has no address before the name is resolved, and
 * from a demotion until the next address is dialled.
 */
struct node *finder_node(const struct finder *finder);

/* NULL: the node has no address. */
const struct control *finder_control(const struct finder *finder);

/* The last report of the node, or of the node before it at this address. */
struct finder_word {
    enum node_role role;
    /* no connection can be had: two in a row were lost or refused, or the node is silent */
    bool is_lost;
    uint64_t said_ns; /* when the node reported its role; 0: never */
    bool is_mute;     /* weir has no login at the node, so the node reports nothing */
    uint64_t lost_ns; /* since when there is no connection; 0: connected */
};

struct finder_word finder_word(const struct finder *finder);

/* Asks the node for its role, if it is connected: on_word follows. */
void finder_ask_role(struct finder *finder);

/* As control_ask. */
bool finder_ask(struct finder *finder, const struct slice *words, size_t n,
                const struct control_question *question);

/*
 * Demotes the node, because another server is the master. A new node at this address replaces the
 * demoted node. Not to be called from within `ops`.
 */
void finder_give_up(struct finder *finder);

/*
 * Replaces the node by a new one at this address; lanes to the old node retire. Not to be called
 * from within `ops`.
 */
void finder_renew(struct finder *finder);

/* Acts on node_ask: asks the node for its role, and looks its name up. */
void finder_look(struct finder *finder);

/* Returns why the name is not resolved; "": the name is resolved. */
const char *finder_name_error(const struct finder *finder);

/* An address of the name, and why the address is not in use. */
struct finder_try {
    char address[ENDPOINT_TEXT];
    char why[128]; /* why the address is not in use; "": it is in use, or was not dialled */
};

/* Sets *out to address `i`. False: there is no address `i`. */
bool finder_try(const struct finder *finder, unsigned i, struct finder_try *out);

/* Asynchronous; frees itself. No callback comes after this call. */
void finder_close(struct finder *finder);

#endif
