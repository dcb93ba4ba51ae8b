/*
 * Logs a failover in one line: the old master, the time without a master, the new master, and the
 * fates of clients' requests meanwhile.
 *
 *   rest -- the master is up --> rest ...
 *   miss -- the master is missed: the story counts fates from the last rest on
 *   find -- a server is the master: the old one, or another
 *   tell -- a moment later, when waiting requests have been sent
 *
 * Main thread. Pure: no clock, no I/O.
 */
#ifndef WEIR_RUN_FAILOVER_STORY_H
#define WEIR_RUN_FAILOVER_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/figures/counts.h"
#include "run/config/address.h"

#define FAILOVER_STORY_ROOM (2 * ADDRESS_TEXT + 256)

/* Counters of the fates of clients' requests (enum outage_fate), summed over all workers. */
struct fates {
    uint64_t n[FATE_COUNT];
};

struct failover_story {
    char was[ADDRESS_TEXT], is[ADDRESS_TEXT];
    uint64_t missed_ns; /* since when the master is missed; 0: not missed */
    uint64_t found_ns;  /* when `is` became the master, or came back; 0: not yet */
    struct fates before;
};

/* Notes the counters while the master is up. A zeroed story is valid. */
void failover_story_rest(struct failover_story *story, const struct fates *now);

/* Notes that `was` is missed. While a story runs this call only takes back failover_story_find. */
void failover_story_miss(struct failover_story *story, const char *was, uint64_t since_ns);

/* Notes that `is` is the master. Does nothing if no master is missed. */
void failover_story_find(struct failover_story *story, const char *is, uint64_t now_ns);

/* Returns when the story is to be logged; 0: no story is over. */
uint64_t failover_story_due_ns(const struct failover_story *story, uint64_t after_ns);

/* Ends the story, and prints its line. False: too little happened for a log line. */
bool failover_story_tell(struct failover_story *story, const struct fates *now,
                         char line[FAILOVER_STORY_ROOM]);

#endif
