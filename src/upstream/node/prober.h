/*
 * Finds out whether a call that may block in Redis does block. The call blocks if Redis had time to
 * answer, and has not answered.
 *
 * The probe is for a client that has closed its side while a call that may block is in flight.
 * Waiting for the answer could pop an element from a list for a client that is gone. Closing at
 * once could lose an answer in flight. Redis serves all its connections in each iteration, and so
 * does weir. Several HELLOs in sequence are answered on another lane to the node. A call that was
 * sent before these HELLOs, and still has no answer, blocks. A prober belongs to one worker and one
 * node; the worker's thread only.
 */
#ifndef WEIR_UPSTREAM_PROBER_H
#define WEIR_UPSTREAM_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/lane/lanes.h"

struct prober {
    struct lane_user lane_user;
    struct lanes *lanes;
    struct list waiting; /* struct probe, by in_prober */
    bool is_asking;      /* a HELLO is in flight */
};

/* One probe; embedded in the struct that waits for its end. */
struct probe {
    struct list in_prober; /* empty: the probe does not wait */
    uint8_t rounds;        /* HELLOs still to be answered */
    void (*on_over)(struct probe *probe);
};

void prober_init(struct prober *prober, struct lanes *lanes);

/*
 * Begin to probe: on_over follows, at once if no lane can be had. Returns NULL, or a lane that is
 * not ready yet: the caller waits for that lane and calls again.
 */
struct lane *prober_start(struct prober *prober, struct probe *probe);

/* The node is no longer used: no call is in flight at the node, and no on_over follows. */
void prober_fini(struct prober *prober);

/* on_over will not follow. Harmless on a probe that does not wait. */
void prober_cancel(struct probe *probe);

#endif
