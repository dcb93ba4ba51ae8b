/*
 * The drain of the process: workers accept no more clients, and clients are closed between two
 * commands (front/client/drain.h). After drain-timeout the remaining clients are closed. Every few
 * seconds the log names the clients that are left. Main thread.
 *
 *   drain_begin -> each worker: stops accepting (deaf), then closes its clients (empty)
 *               <- worker pool: all workers are deaf: the listening sockets are closed
 *               <- worker pool: all workers are empty, or the deadline has come: on_over
 */
#ifndef WEIR_RUN_DRAIN_H
#define WEIR_RUN_DRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/loop.h"
#include "run/worker_pool.h"
#include "run/listening.h"

struct drain {
    struct worker_pool *pool;
    struct listening *listening;
    uint64_t timeout_ns; /* 0: clients are closed at once */
    _Atomic unsigned *clients;
    void (*on_over)(void *arg); /* called once: the workers may be stopped now */
    void *arg;
    /* private, zero before */
    uv_timer_t deadline;
    uv_timer_t telling;
    uint64_t began_ns;
    bool is_on;
    bool has_successor;
    char prefix[24]; /* begins log lines: "process 4711: " with a successor; else "" */
};

/*
 * Begins the drain. on_over follows, maybe before drain_begin returns. has_successor: another
 * process has the listening sockets too, and accepts the connections that wait.
 */
void drain_begin(struct drain *drain, struct loop *loop, bool has_successor);

/*
 * Asynchronous: the struct must stay until the loop is closed. Does nothing if the drain has not
 * begun.
 */
void drain_close(struct drain *drain);

#endif
