/*
 * Zones of the system's time zone database: TZDIR, or /usr/share/zoneinfo.
 *
 * It reads the environment and files: for the thread that reads the configuration.
 */
#ifndef WEIR_BASE_ZONE_FILE_H
#define WEIR_BASE_ZONE_FILE_H

#include <stddef.h>

#include "base/slice.h"
#include "base/zone.h"

/*
 * By its IANA name, "Europe/Berlin", as it is written there. NULL: it is no such name, or there is none, or its file is
 * no good: `why` says so.
 */
__attribute__((warn_unused_result)) struct zone *zone_load(struct slice name, char *why, size_t why_size);

#endif
