/*
 * Replies by which Redis says that it has not run a command. They are decided before the command begins.
 *
 * Invariant: of rows with one text only the whole reply counts, byte for byte. A script can forge such an error, so
 * only calls on shared lanes are asked about (lane.h: no script travels there). Pure.
 */
#ifndef WEIR_UPSTREAM_NOT_RUN_H
#define WEIR_UPSTREAM_NOT_RUN_H

#include <stdbool.h>
#include <stddef.h>

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
 * error's first word, whatever follows it, and are read by upstream/node/redirect.h: no client hears either.
 * `is_cluster`: of the node of a cluster.
 */
struct not_run_look not_run_look(struct slice bytes, bool is_cluster);

/* The whole reply of a row that has one text. */
struct slice not_run_text(enum not_run row);

#endif
