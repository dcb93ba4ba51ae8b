/*
 * How many clients the limit on open files leaves room for.
 */
#ifndef WEIR_RUN_DESCRIPTORS_H
#define WEIR_RUN_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* What wants descriptors, and how many of each. */
struct descriptors {
    unsigned max_clients;
    bool lanes_private; /* each client takes a second one */
    unsigned workers;
    unsigned listens; /* addresses, each opened by every worker */
    unsigned others;  /* connections that are no clients: operators' over HTTP */
};

/*
 * Raise the limit as far as they need and the system allows. Returns max_clients, or the fewer that fit beside what weir
 * needs for itself, which the log then says.
 */
unsigned descriptors_fit(const struct descriptors *wanted);

/* How many there may be now. */
uint32_t descriptors_allowed(void);

#endif
