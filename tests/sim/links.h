/*
 * Faults on single connections. Each strikes at a byte offset of one direction of one connection. A
 * replay therefore repeats the fault, however the bytes are batched and whenever they arrive.
 */
#ifndef WEIR_SIM_LINKS_H
#define WEIR_SIM_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/kernel.h"

struct link_fault {
    struct conn_name whose;
    bool to_weir;     /* the direction with the bytes that count */
    uint64_t upto;    /* the fault is armed after this many bytes, */
    uint64_t wait_ns; /* waits this long, */
    /* and this many steps of the world; if both are 0 no further byte is sent before */
    uint64_t wait_steps;
    unsigned kind;     /* index of link_kind_named */
    uint64_t us, pick; /* how long the fault lasts, and which of several variants */
};

/* False: there is no such kind. */
__attribute__((warn_unused_result)) bool link_kind_named(const char *name, unsigned *kind);

/* Registers the callbacks for connections. After kernel_init. */
void links_start(void);

/*
 * Strikes the connection with a fault of a random kind, now or some bytes later, and notes the
 * fault in the scenario.
 */
void links_strike(struct conn *conn, uint64_t us, uint64_t pick);

/* Strikes the connection with this fault now. */
void links_strike_now(struct conn *conn, bool to_weir, const char *kind, uint64_t us,
                      uint64_t pick);

/* Arms the fault. */
void links_add(const struct link_fault *fault);

/* Carries out the faults that are due. Called after every step of the world. */
void links_look(void);

/* True if a fault is armed and waits, or lasts. */
bool links_are_waiting(void);

/* The longest delay by a fault of Redis' replies. */
uint64_t links_late_ns(void);

/* Ends all faults. */
void links_end(void);
void links_fini(void);

#endif
