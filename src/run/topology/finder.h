/*
 * Finds the node behind one address of `upstream`, and keeps the main thread's connections to it: a control lane
 * (upstream/control.h), and once clients are served a probe that asks whom Redis takes strangers for
 * (upstream/login/auth_probe.h).
 *
 * A name is looked up at the start, when a connection is lost or refused, when the node is asked about (node_ask), and
 * every upstream-resolve. While the address in use is among those of the name it stays in use. Else, or when it cannot
 * be connected to, all addresses are dialled in order: the next at once when one refuses, after 250 ms when it is
 * silent. The first that answers is the node from then on. A master that is a replica now is given up in the same way.
 * The finder of one server among several (FINDER_MEMBER) tells what its server says of itself, and leaves it to its
 * owner to tell what follows from a change of role. Main thread.
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
    /* finder_node is another. */
    void (*on_node)(void *arg);
    /* The node's own command table; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The node answers, and cannot be served. */
    void (*on_rejected)(void *arg, const char *why);
    /* node->maxclients has been set. */
    void (*on_maxclients)(void *arg);
    /* finder_word may be another: the node has said what it is, or a connection to it has failed. */
    void (*on_word)(void *arg);
    /* The first attempt is over, however it went. */
    void (*on_settled)(void *arg);
    /* Something has changed; the line says what, for people. `about` is the same each time that is the same. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

enum finder_kind {
    FINDER_ALONE,  /* its server is the whole upstream */
    FINDER_MEMBER, /* one of several servers, of which one at a time is the master */
};

struct finder_settings {
    struct upstream *upstream; /* lives longer */
    enum finder_kind kind;
    const struct node *kin;          /* the finder's nodes share its contention; lives longer; NULL: none */
    const struct address *address;   /* lives longer */
    const struct dialling *dialling; /* where weir may connect; lives longer */
    uint64_t resolve_ns;             /* how often the name is looked up; 0: only when there is a reason to */
    struct credentials credentials;  /* the user lives longer; the passwords are copied */
};

/* Out of memory ends the process. */
struct finder *finder_open(struct loop *loop, const struct finder_settings *settings, const struct finder_ops *ops,
                           void *arg);

/* Begin to look: ops are called from now on. */
void finder_start(struct finder *finder);

/* Probe whom the node takes strangers for, from now on. */
void finder_probe(struct finder *finder);

/* As control_set_password. */
void finder_set_password(struct finder *finder, const struct credentials *credentials);

/* Without a reference. It has no address before the name is resolved, or after it was demoted until one is dialled. */
struct node *finder_node(const struct finder *finder);

/* NULL: its node has no address. */
const struct control *finder_control(const struct finder *finder);

/* What the node, or the one before it at its address, has said of itself last. */
struct finder_word {
    enum node_role role;
    bool is_lost;     /* no connection can be had: one was lost or refused, and so was the next; or it is silent */
    uint64_t said_ns; /* when the node said its role; 0: never */
    bool is_mute;     /* weir has no login there, and so is told nothing */
    uint64_t lost_ns; /* since when its connection has been lost, and none was to be had; 0: there is one */
};

struct finder_word finder_word(const struct finder *finder);

/* Ask what the node is, if it is connected: on_word follows. */
void finder_ask_role(struct finder *finder);

/* As control_ask. */
bool finder_ask(struct finder *finder, const struct slice *words, size_t n, const struct control_question *question);

/*
 * Another server is the master: the node is demoted, and another takes its place, at the same address. Not from
 * within a call of `ops`.
 */
void finder_give_up(struct finder *finder);

/* Another node takes the place of this one, at the same address: lanes to the old one retire. Not from within `ops`. */
void finder_renew(struct finder *finder);

/* Something may have been asked about the node: node_ask. */
void finder_look(struct finder *finder);

/* Why the name leads nowhere; "": it is resolved. */
const char *finder_name_error(const struct finder *finder);

/* An address of the name, as it was dialled last. */
struct finder_try {
    char address[ENDPOINT_TEXT];
    char why[128]; /* it is not in use; "": it is, or there was no reason to dial it */
};

/* Address `i`. False: there are no more. */
bool finder_try(const struct finder *finder, unsigned i, struct finder_try *out);

/* Asynchronous; frees itself. No callback comes after it. */
void finder_close(struct finder *finder);

#endif
