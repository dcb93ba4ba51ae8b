/*
 * What the driver is told on its command line.
 */
#ifndef WEIR_BENCH_OPTIONS_H
#define WEIR_BENCH_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "batches.h"

#define PIDS_MAX 8

struct options {
    struct sockaddr_in to;
    struct in_addr from; /* what connections are bound to; 0: what the system chooses */
    unsigned n_from;     /* so many addresses from there on, in turn */
    unsigned conns, pipeline;
    double seconds, warm_up;
    uint64_t
        begin_ns;   /* the clock at which the measured stretch begins, at the earliest; 0: when the warm-up is over */
    uint64_t count; /* replies after which the run is over; 0: time decides */
    double rate;    /* requests per second, in an open loop; 0: the next goes when the last is answered */
    bool is_resp3, is_tls, is_churn;
    long pids[PIDS_MAX];
    unsigned n_pids;
    struct recipe recipe;
};

/* Ends the process where they make no sense. The recipe's words stay argv's. */
struct options options_read(int argc, char **argv);

#endif
