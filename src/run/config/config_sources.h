/*
 * The addresses of `upstream`: one server, a master and its replicas, the sentinels of a master,
 * or nodes of a Redis Cluster.
 *
 * The lines of the key add up. All addresses begin with tls: or none does. No address is given
 * twice. Part of struct config: immutable once the configuration is built, and read by any thread.
 */
#ifndef WEIR_RUN_CONFIG_SOURCES_H
#define WEIR_RUN_CONFIG_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"
#include "run/config/address.h"

#define SOURCES_MOST 16

enum source_form {
    SOURCES_SERVER,   /* host:port */
    SOURCES_LIST,     /* a, b, c: the master is the server that reports this role */
    SOURCES_SENTINEL, /* sentinel:NAME@a, b, c */
    SOURCES_CLUSTER,  /* cluster:a, b, c: some nodes, which name the other nodes */
};

struct sources {
    enum source_form form;
    char *master_name;         /* of the sentinel form, else NULL; heap */
    struct address *addresses; /* of servers, of sentinels, or of nodes of a cluster; heap */
    size_t n;                  /* 1 to SOURCES_MOST in a valid configuration */
};

/*
 * Adds the addresses of one line of `upstream`. False: `why` has the error. A login in the text is
 * not repeated.
 */
__attribute__((warn_unused_result)) bool sources_add(struct sources *sources, struct slice value,
                                                     struct why why);

/* True if there may be several servers, with one master at a time. */
static inline bool sources_are_replicated(const struct sources *sources)
{
    return sources->form == SOURCES_LIST || sources->form == SOURCES_SENTINEL;
}

/* True if sentinels, replicas or nodes direct weir to further addresses. */
static inline bool sources_lead_on(const struct sources *sources)
{
    return sources->form != SOURCES_SERVER;
}

void sources_fini(struct sources *sources);

#endif
