/*
 * Replies by which Redis says that it has not run a command, MOVED and ASK among them. They are decided before the
 * command begins.
 *
 * Invariant: of rows with one text only the whole reply counts, byte for byte. A script can forge such an error, so
 * only calls on shared lanes are asked about (lane.h: no script travels there). Pure.
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
    NOT_RUN_FIXED, /* how many have one text */
    NOT_RUN_MOVED = NOT_RUN_FIXED,
    NOT_RUN_ASK,
    NOT_RUN_ROWS
};

enum not_run_sight {
    NOT_RUN_NO,   /* the reply is another */
    NOT_RUN_MORE, /* it may be one of the rows: its rest has not come */
    NOT_RUN_YES,  /* it is that row, and is whole */
};

struct not_run_look {
    enum not_run_sight sight;
    enum not_run row; /* with NOT_RUN_YES */
    size_t len;       /* with NOT_RUN_YES: bytes of the reply */
};

#define NOT_RUN_ROOM 320 /* bytes: more than the longest has; a host name has at most 255 */

/*
 * What the bytes from the beginning of a reply say; more may follow behind the reply. MOVED and ASK are found by the
 * error's first word, whatever follows it, and are read by redirect_parse: no client hears either.
 * `is_cluster`: of the node of a cluster.
 */
struct not_run_look not_run_look(struct slice bytes, bool is_cluster);

/* The whole reply of a row that has one text. */
struct slice not_run_text(enum not_run row);

/* ---- MOVED and ASK ---- */

struct node;

/*
 * MOVED or ASK: a node of a Redis Cluster names the node that serves a slot, or takes it. A hint, not an address: it
 * only chooses among the nodes of the topology (nodes_row_named), and nothing is dialled for it.
 */
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

#endif
