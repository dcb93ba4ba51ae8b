/*
 * Looks at upstream-password-file: every 10 s, and soon after a server has refused weir's own login. A password that is
 * new is used from then on (run/commands/governor.h); one that cannot be used changes nothing, and the log says so
 * once.
 *
 * The path is followed each time, as some systems put another file or link there. The main thread.
 */
#ifndef WEIR_RUN_PASSWORD_WATCH_H
#define WEIR_RUN_PASSWORD_WATCH_H

#include "net/loop.h"
#include "run/commands/governor.h"
#include "upstream/upstream.h"

#define PASSWORD_WATCH_WHY 512

struct password_watch {
    struct governor *governor;
    struct upstream *upstream;
    struct journal *journal;
    /* private, zero before */
    uv_timer_t timer;
    uv_async_t refused;
    uint64_t looked_ns;
    bool is_doubted;              /* it could not be used when it was last looked at */
    char why[PASSWORD_WATCH_WHY]; /* why the file cannot be used, as the log has it; "": it can */
};

/* Does nothing where weir has no password. What it is made of outlives it. */
void password_watch_open(struct password_watch *watch, struct loop *loop);

/* Asynchronous, as the loop is closed. Once, and only behind password_watch_open. */
void password_watch_close(struct password_watch *watch);

#endif
