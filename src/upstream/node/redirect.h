/*
 * MOVED and ASK: the error replies by which a node of a Redis Cluster names the node that serves a slot, or takes it.
 *
 * A redirect is a hint, not an address: it only chooses among the nodes of the topology, and nothing is dialled for it.
 * Pure but for redirect_row, which is the worker's.
 */
#ifndef WEIR_UPSTREAM_REDIRECT_H
#define WEIR_UPSTREAM_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct node;
struct nodes;
struct nodes_row;

struct redirect {
    bool is_ask;
    uint16_t slot;
    uint16_t port;
    struct slice host; /* into the reply; empty: that of the node that answers */
};

/* True if a whole reply is an error that begins with the word MOVED or ASK, well-formed or not. No client hears it. */
bool redirect_is(struct slice reply);

/* From a whole reply: "-MOVED 3999 127.0.0.1:6381\r\n". False: it is another reply, or is not well-formed. */
__attribute__((warn_unused_result)) bool redirect_parse(struct slice reply, struct redirect *redirect);

/* True if the node has this address, as it was announced or as it is dialled. `from` has answered. */
bool redirect_is_to(const struct redirect *redirect, const struct node *from, const struct node *node);

/* The row of the master that it names; NULL: no master of the topology has this address. */
struct nodes_row *redirect_row(const struct redirect *redirect, const struct nodes *nodes, const struct node *from);

#endif
