/*
 * Which refused requests must not be sent again: those behind which a later one for the same key has
 * been run.
 *
 *   sent      SET k 1, SET k 2          on one lane, to one node
 *   answered  -CLUSTERDOWN, +OK         the node was content again in between
 *   heard     -CLUSTERDOWN, +OK         SET k 1 behind SET k 2 would leave k as it never was
 *
 * Two that read are in no order. What was refused is in spread.refused until all that was in flight
 * behind it at that node is answered. The worker's thread; price: nothing while nothing is there.
 */
#ifndef WEIR_FRONT_OVERTAKEN_H
#define WEIR_FRONT_OVERTAKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "front/cluster/spread.h"

struct refused {
    struct list in_spread;        /* spread.refused; else itself */
    const struct nodes_row *from; /* by which node; compared alone */
    int32_t slot;                 /* of its keys, or KEYS_NO_SLOT */
    struct slice request;         /* its owner's */
    bool is_overtaken;
};

/* This request has been run there while spread.refused is not empty. */
void overtaken_note_run(const struct place *place, struct slice request);

/* The slot of its keys; KEYS_NO_SLOT also of no bytes. */
int32_t overtaken_slot_of(const struct client *client, struct slice request);

#endif
