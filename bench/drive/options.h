/* The driver's command line. */
#ifndef WEIR_BENCH_OPTIONS_H
#define WEIR_BENCH_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "batches.h"

#define PIDS_MAX 8

struct options {
    struct sockaddr_in to;
    struct in_addr from; /* address that connections are bound to; 0: chosen by the system */
    /* number of addresses, from `from` on, that connections alternate between */
    unsigned n_from;
    unsigned conns, pipeline;
    double seconds, warm_up;
    uint64_t begin_ns; /* earliest start of the measured window; 0: after the warm-up */
    uint64_t count;    /* replies after which the run is over; 0: time decides */
    double rate;       /* requests per second, in an open loop; 0: a closed loop */
    bool is_resp3, is_tls, is_churn;
    long pids[PIDS_MAX];
    unsigned n_pids;
    struct recipe recipe;
};

/* Exits the process if the options make no sense. The recipe's words point into argv. */
struct options options_read(int argc, char **argv);

#endif
