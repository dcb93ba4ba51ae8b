/*
 * What is known of the upstream, by whoever learnt it last; read and written by all threads.
 */
#ifndef WEIR_UPSTREAM_UPSTREAM_H
#define WEIR_UPSTREAM_UPSTREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/link.h"

struct upstream {
    struct endpoint endpoint;
    const char *text;            /* the address as configured, for the log */
    uint64_t connect_timeout_ns; /* for connecting, and for each answer until a connection is ready */
    uint64_t timeout_ns;         /* for any answer to a call that does not block; 0: none */
    _Atomic bool is_barred;      /* it cannot be served (a cluster, too old): nobody may use it */
    _Atomic bool needs_auth;     /* it wants a password for `default` */
};

#endif
