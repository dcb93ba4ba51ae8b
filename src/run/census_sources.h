/*
 * Where a census looks (run/census.h). Main thread.
 */
#ifndef WEIR_RUN_CENSUS_SOURCES_H
#define WEIR_RUN_CENSUS_SOURCES_H

#include "front/front.h"
#include "run/config/config.h"
#include "run/topology/controls.h"
#include "run/crew.h"
#include "run/commands/governor.h"
#include "run/listening.h"
#include "run/memory.h"

struct census {
    const struct config *config;
    const struct topology *topology;
    const struct front_settings *settings;
    const struct listening *listening;
    const struct governor *governor;
    const struct crew *crew;         /* NULL: not yet */
    const struct controls *controls; /* NULL: not yet, or no more */
    const struct memory *memory;
    struct journal *journal;
    struct history *history;
    uint64_t started_unix_ms;
    bool is_stopping;
};

#endif
