/*
 * Replies that say that Redis has not run a command, including MOVED and ASK. Redis sends the reply
 * before the command begins.
 *
 * Invariant: for rows with a fixed text only the whole reply counts, byte for byte. A script can
 * forge the reply. Only calls on shared lanes are checked, because no script is sent on shared
 * lanes (lane.h). Pure.
 */
#ifndef WEIR_UPSTREAM_NOT_RUN_H
#define WEIR_UPSTREAM_NOT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum not_run {
#define NOT_RUN(name, text, where) NOT_RUN_##name,
#include "upstream/node/not_run.def"
#undef NOT_RUN
    NOT_RUN_FIXED, /* number of rows with a fixed text */
    NOT_RUN_MOVED = NOT_RUN_FIXED,
    NOT_RUN_ASK,
    NOT_RUN_ROWS
};

enum not_run_sight {
    NOT_RUN_NO,   /* another reply */
    NOT_RUN_MORE, /* may be a row: the rest has not arrived */
    NOT_RUN_YES,  /* the bytes are the whole row */
};

struct not_run_look {
    enum not_run_sight sight;
    enum not_run row; /* with NOT_RUN_YES */
    size_t len;       /* with NOT_RUN_YES: bytes of the reply */
};

#define NOT_RUN_ROOM 320 /* bytes: more than the longest reply; a host name has at most 255 */

/*
 * Classify the bytes from the beginning of a reply; bytes of later replies may follow. MOVED and
 * ASK are recognised by the error's first word, whatever follows, and are parsed by redirect_parse.
 * Clients never see MOVED or ASK. `is_cluster`: the node belongs to a cluster.
 */
struct not_run_look not_run_look(struct slice bytes, bool is_cluster);

/* The whole reply of a row with a fixed text. */
struct slice not_run_text(enum not_run row);

/* ---- MOVED and ASK ---- */

struct node;

/*
 * MOVED or ASK: a node of a Redis Cluster names the node that serves a slot, or imports the slot.
 * The address is a hint: it only selects a node of the topology (nodes_row_named), and weir never
 * connects to the address.
 */
struct redirect {
    bool is_ask;
    uint16_t slot;
    uint16_t port;
    struct slice host; /* points into the reply; empty: the host of the answering node */
};

/*
 * True if a whole reply is an error with the first word MOVED or ASK, well-formed or not. Clients
 * never see the reply.
 */
bool redirect_is(struct slice reply);

/*
 * Parse a whole reply: "-MOVED 3999 127.0.0.1:6381\r\n". False: another reply, or not well-formed.
 */
__attribute__((warn_unused_result)) bool redirect_parse(struct slice reply,
                                                        struct redirect *redirect);

/*
 * True if the redirect names `node`, by the node's configured or resolved address. `from` is the
 * answering node.
 */
bool redirect_is_to(const struct redirect *redirect, const struct node *from,
                    const struct node *node);

#endif
