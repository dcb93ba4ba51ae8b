/*
 * What goes wrong on single connections: each at a byte of one direction of one party's connection, so that it is the same
 * thing again when it is replayed, however its bytes are batched and whenever they come.
 */
#ifndef WEIR_SIM_LINKS_H
#define WEIR_SIM_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/kernel.h"

struct link_fault {
    struct conn_name whose;
    bool to_weir;        /* which direction's bytes count */
    uint64_t upto;       /* bytes of it have been sent, */
    uint64_t wait_ns;    /* then so long passes, */
    uint64_t wait_steps; /* and so many steps of the world; if both are 0 no byte more is sent before */
    unsigned kind;       /* and then this happens: link_kind_named */
    uint64_t us, pick;   /* how long it lasts, and which of several */
};

/* False: there is no such kind. */
__attribute__((warn_unused_result)) bool link_kind_named(const char *name, unsigned *kind);

/* They hear of connections from now on. After kernel_init. */
void links_start(void);

/* Kind by chance: one of those connections, now or some bytes later. It is written down. */
void links_strike(struct conn *conn, uint64_t us, uint64_t pick);

/* This one: now. */
void links_strike_now(struct conn *conn, bool to_weir, const char *kind, uint64_t us, uint64_t pick);

/* It is to happen when its bytes have been sent. */
void links_add(const struct link_fault *fault);

/* Carry out what is due. To be asked after every step of the world. */
void links_look(void);

/* Something is only waited for. */
bool links_are_waiting(void);

/* By so much what Redis has said has come to weir later, at most. */
uint64_t links_late_ns(void);

/* Nothing more happens. */
void links_end(void);
void links_fini(void);

#endif
