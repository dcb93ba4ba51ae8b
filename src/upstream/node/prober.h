/*
 * Finds out whether a call that may block does block: it does if a node that has had time to answer has not.
 *
 * Needed for a client that has closed its side while such a call is in flight: to wait for the answer could take an
 * element from a list for nobody, and to close at once could lose an answer that is on its way. Redis reads all its
 * connections in turns, and so does weir: once some HELLOs, one after the other, have been answered on another lane to
 * the same node, a call that was sent before them and has no answer blocks. One for each worker and node; the worker's
 * thread only.
 */
#ifndef WEIR_UPSTREAM_PROBER_H
#define WEIR_UPSTREAM_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/lane/lanes.h"

struct prober {
    struct rider rider;
    struct lanes *lanes;
    struct list waiting; /* struct probe, by in_prober */
    bool is_asking;      /* a HELLO is on its way */
};

/* One question; embedded in what waits for the end of it. */
struct probe {
    struct list in_prober; /* itself when it is not waiting */
    uint8_t rounds;        /* HELLOs whose answers are still to come */
    void (*on_over)(struct probe *probe);
};

void prober_init(struct prober *prober, struct lanes *lanes);

/*
 * Begin to ask: on_over follows, at once if there is no lane to ask on. Returns NULL, or a lane that is not ready yet:
 * then the caller waits for it and starts again.
 */
struct lane *prober_start(struct prober *prober, struct probe *probe);

/* Its node is not used any more: no call is under way there, and no on_over follows. */
void prober_fini(struct prober *prober);

/* on_over will not follow. Safe on one that is not waiting. */
void prober_cancel(struct probe *probe);

#endif
