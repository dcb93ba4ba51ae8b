/*
 * The new process' side of an upgrade (run/upgrade.h).
 */
#ifndef WEIR_RUN_SUCCESSION_H
#define WEIR_RUN_SUCCESSION_H

#include <stdbool.h>
#include <uv.h>

#include "net/loop.h"

struct succession {
    int fd; /* where the predecessor is answered; -1: there is none */
    void (*on_alone)(void *arg);
    void *arg;
    /* its own, zero before */
    uv_poll_t poll;
    bool is_waiting;
};

/* Tell the predecessor that this process serves. on_alone follows when this one speaks for the service. */
void succession_serve(struct succession *succession, struct loop *loop);

/* Asynchronous, as the loop is closed. Safe whatever has been done. */
void succession_close(struct succession *succession);

#endif
