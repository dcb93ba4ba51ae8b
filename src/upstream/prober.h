/*
 * Finds out that Redis has had its chance to answer.
 *
 * A client that has ended its side while a command of its may block cannot be waited for, or an element could be taken
 * for nobody; nor be closed at once, for the answer may be on its way. Redis reads all its connections in turns, and so does
 * weir: once some HELLOs, one after the other, have come back on another lane, whatever has not been answered by then blocks.
 */
#ifndef WEIR_UPSTREAM_PROBER_H
#define WEIR_UPSTREAM_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/lanes.h"

struct prober {
    struct rider rider;
    struct lanes *lanes;
    struct list waiting; /* struct probe */
    bool is_asking;
};

struct probe {
    struct list in_prober; /* itself when it is not waiting */
    uint8_t rounds;        /* questions still to come back */
    void (*on_over)(struct probe *probe);
};

void prober_init(struct prober *prober, struct lanes *lanes);

/*
 * on_over follows, at once if there is no lane to ask on. Returns a lane that is not ready yet, or NULL: once it is,
 * start again.
 */
struct lane *prober_start(struct prober *prober, struct probe *probe);

/* Safe on one that is not waiting. */
void prober_cancel(struct probe *probe);

#endif
