/*
 * Changes of the running configuration that come with time: blocks and lines with an end are
 * removed, and a new password in upstream-password-file is used.
 *
 * The file is read every 10 s, and soon after a server has refused weir's own login. The path is
 * resolved each time, as some systems replace the file or link. A file that cannot be used changes
 * nothing, and is logged once. Main thread.
 */
#ifndef WEIR_RUN_UPKEEP_H
#define WEIR_RUN_UPKEEP_H

#include "net/loop.h"
#include "run/commands/config_manager.h"
#include "upstream/upstream.h"

#define UPKEEP_WHY 512

struct upkeep {
    struct config_manager *manager;
    struct upstream *upstream;
    struct journal *journal;
    /* private, zero before */
    uv_timer_t ending, password;
    uv_async_t refused;
    uint64_t looked_ns;   /* the last read of the file */
    bool is_doubted;      /* the last read failed */
    char why[UPKEEP_WHY]; /* why the file cannot be used, as logged; "": the file is good */
};

/* manager, upstream and journal must be set, and must outlive upkeep. */
void upkeep_open(struct upkeep *upkeep, struct loop *loop);

/* Sets the timer for the next end, which an admin command may have changed. */
void upkeep_await(struct upkeep *upkeep);

/*
 * Asynchronous: the struct must stay until the loop is closed. To be called once, and only after
 * upkeep_open.
 */
void upkeep_close(struct upkeep *upkeep);

#endif
