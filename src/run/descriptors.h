/*
 * How many clients there can be under the limit on open files (RLIMIT_NOFILE).
 */
#ifndef WEIR_RUN_DESCRIPTORS_H
#define WEIR_RUN_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* What needs descriptors. */
struct descriptors {
    unsigned max_clients;
    bool lanes_private; /* each client takes a second one */
    unsigned workers;
    unsigned listens; /* addresses, each opened by every worker */
    unsigned others;  /* connections that are not clients: operators over HTTP */
};

/*
 * Raise the limit as far as needed and possible. Returns max_clients, or less if only so many clients fit beside what
 * weir needs itself; that is logged.
 */
unsigned descriptors_fit(const struct descriptors *wanted);

/* The limit now. */
uint32_t descriptors_allowed(void);

#endif
