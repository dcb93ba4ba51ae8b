/*
 * What time brings to the running configuration: what operators have ordered for a time ends, and another password in
 * upstream-password-file is used.
 *
 * That file is looked at every 10 s, and soon after a server has refused weir's own login. The path is followed each
 * time, as some systems put another file or link there. A file that cannot be used changes nothing, and the log says so
 * once. Main thread.
 */
#ifndef WEIR_RUN_UPKEEP_H
#define WEIR_RUN_UPKEEP_H

#include "net/loop.h"
#include "run/commands/governor.h"
#include "upstream/upstream.h"

#define UPKEEP_WHY 512

struct upkeep {
    struct governor *governor;
    struct upstream *upstream;
    struct journal *journal;
    /* private, zero before */
    uv_timer_t ending, password;
    uv_async_t refused;
    uint64_t looked_ns;   /* at the file */
    bool is_doubted;      /* it could not be used when it was last looked at */
    char why[UPKEEP_WHY]; /* why it cannot be used, as the log has it; "": it can */
};

/* What it is made of outlives it. */
void upkeep_open(struct upkeep *upkeep, struct loop *loop);

/* Wait for what ends next, which another order may have changed. */
void upkeep_await(struct upkeep *upkeep);

/* Asynchronous, as the loop is closed. Once, and only behind upkeep_open. */
void upkeep_close(struct upkeep *upkeep);

#endif
