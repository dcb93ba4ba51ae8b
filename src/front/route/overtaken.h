/*
 * Finds refused requests that must not be sent again, because a later request for the same key has
 * run.
 *
 *   sent      SET k 1, SET k 2          on one lane, to one node
 *   answered  -CLUSTERDOWN, +OK         the node recovered in between
 *   heard     -CLUSTERDOWN, +OK         SET k 1, sent again, would overwrite the newer SET k 2
 *
 * The order of two reads does not matter. A refused request is in spread.refused until all calls in
 * flight behind it at that node are answered. Thread: the worker's. Price: nothing while
 * spread.refused is empty.
 */
#ifndef WEIR_FRONT_OVERTAKEN_H
#define WEIR_FRONT_OVERTAKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "front/cluster/spread.h"

struct refused {
    struct list in_spread;        /* in spread.refused, else in no list */
    const struct nodes_row *from; /* the node that refused the request; never dereferenced */
    int32_t slot;                 /* cluster slot of the request's keys, or KEYS_NO_SLOT */
    struct slice request;         /* owned by the hop */
    bool is_overtaken;
};

/* Records that the node has run this request while spread.refused is not empty. */
void overtaken_note_run(const struct place *place, struct slice request);

/*
 * Returns the cluster slot of the request's keys. KEYS_NO_SLOT: the request has no keys, or the
 * bytes are empty.
 */
int32_t overtaken_slot_of(const struct client *client, struct slice request);

#endif
