/*
 * Zones of the system's time zone database: TZDIR, or /usr/share/zoneinfo.
 *
 * Reads the environment and files: only for the thread that reads the configuration.
 */
#ifndef WEIR_BASE_ZONE_FILE_H
#define WEIR_BASE_ZONE_FILE_H

#include <stddef.h>

#include "base/slice.h"
#include "base/zone.h"

/*
 * Loads a zone by its IANA name ("Europe/Berlin"; case matters). Returns one reference. NULL: not a
 * zone's name, no such zone, or a damaged file; `why` says which.
 */
__attribute__((warn_unused_result)) struct zone *zone_load(struct slice name, char *why, size_t why_size);

#endif
