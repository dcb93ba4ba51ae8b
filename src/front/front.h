/*
 * What all clients of one worker share: settings, tables, lanes. Everything but the atomics is the worker thread's own.
 */
#ifndef WEIR_FRONT_FRONT_H
#define WEIR_FRONT_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "front/prober.h"
#include "limit/command.h"
#include "limit/identity.h"
#include "limit/policy.h"
#include "limit/subject.h"
#include "net/loop.h"
#include "upstream/lanes.h"

/* The same for every worker, never changed after the start. */
struct front_settings {
    bool lanes_private;
    unsigned max_clients;
    size_t output_limit_bytes;
    struct slice error_prefix;
    struct identity identity;
    struct subjects *subjects;
    struct upstream *upstream;
    _Atomic unsigned clients; /* on all workers */
};

/* Requests that passed the gate, lie next to one another in the read buffer and go to the same lane: one copy. */
struct run {
    struct lane *lane; /* NULL: none */
    const char *at;
    size_t len;
};

struct front {
    struct loop *loop;
    struct front_settings *settings;
    struct command_table *commands;
    struct policies *policies; /* bound to `commands` */
    struct lanes lanes;
    struct prober prober;
    struct list clients;
    struct run run;
};

/* Takes over one reference each of `commands` and `policies`. */
void front_init(struct front *front, struct loop *loop, struct front_settings *settings, struct command_table *commands,
                struct policies *policies);

/* A connection was accepted. */
void front_accept(struct front *front, int fd, bool is_unix);

/* A new command table and the policies bound to it; takes over the references. */
void front_adopt(struct front *front, struct command_table *commands, struct policies *policies);

/* Close every client and every lane; asynchronous. */
void front_close(struct front *front);

/* After the loop has ended. */
void front_fini(struct front *front);

#endif
