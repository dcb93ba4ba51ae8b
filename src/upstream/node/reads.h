/*
 * Where reads go when there are replicas, as the configuration says. Set at the start, then immutable. Any thread.
 */
#ifndef WEIR_UPSTREAM_READS_H
#define WEIR_UPSTREAM_READS_H

#include <stdbool.h>
#include <stdint.h>

enum reads {
    READS_MASTER,   /* all go to the master */
    READS_ASKED,    /* those of clients that have sent READONLY may go to replicas */
    READS_REPLICAS, /* those of all clients may */
};

struct reads_settings {
    enum reads reads;
    uint64_t poll_ns;    /* how often master and replicas are asked for their offsets */
    uint64_t lag_max_ns; /* a replica is read from while it has the master's offset of so long ago */
    bool own_writes;     /* a client reads its own writes: from the master until a replica has them */
};

#endif
