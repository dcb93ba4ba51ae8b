/*
 * Gathers what operators see (admin/snapshot.h) from the workers' counters and from whoever else knows. On the main
 * thread; reads what other threads write, and makes none of them wait.
 */
#ifndef WEIR_RUN_CENSUS_H
#define WEIR_RUN_CENSUS_H

#include "admin/snapshot.h"
#include "front/front.h"
#include "run/config.h"
#include "run/crew.h"
#include "run/governor.h"
#include "run/listening.h"
#include "run/memory.h"
#include "upstream/control.h"

/* Where it looks. */
struct census {
    const struct config *config;
    const struct topology *topology;
    const struct front_settings *settings;
    const struct listening *listening;
    const struct governor *governor;
    const struct crew *crew;       /* NULL: not yet */
    const struct control *control; /* NULL: not yet */
    const struct memory *memory;
    struct journal *journal;
    struct history *history;
    uint64_t started_unix_ms;
    bool is_stopping;
};

#define CENSUS_WHY_ROOM sizeof(((struct snapshot *)0)->not_ready)

/* Does weir serve clients, as /readyz says? If not, why. */
bool census_is_ready(const struct census *census, char why[CENSUS_WHY_ROOM]);

/* The history gets to know it. */
struct snapshot *census_take(const struct census *census);

#endif
