/*
 * Tells a failover in one line: which server was the master, since when it was missed, which is the master now, and
 * what became of clients' requests meanwhile.
 *
 *   rest -- the master is there --> rest ...
 *   miss -- it is not: what is counted from the last rest on belongs to the story
 *   find -- a server is the master: the same one, or another
 *   tell -- a moment later, when requests that waited have been sent
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

/* Of all workers together. */
struct fates {
    uint64_t n[FATE_COUNT];
};

struct failover_story {
    char was[ADDRESS_TEXT], is[ADDRESS_TEXT];
    uint64_t missed_ns; /* since when; 0: it is not */
    uint64_t found_ns;  /* when `is` became the master, or was there again; 0: none has yet */
    struct fates before;
};

/* Zeroed: nothing has been seen. */
void failover_story_rest(struct failover_story *story, const struct fates *now);

/* `was` is missed. Nothing changes while it is, but that what was found is lost again. */
void failover_story_miss(struct failover_story *story, const char *was, uint64_t since_ns);

/* Nothing is to be told if nothing was missed. */
void failover_story_find(struct failover_story *story, const char *is, uint64_t now_ns);

/* When the story may be told; 0: there is none. */
uint64_t failover_story_due_ns(const struct failover_story *story, uint64_t after_ns);

/* The story is over. False: nothing happened that is worth a line. */
bool failover_story_tell(struct failover_story *story, const struct fates *now, char line[FAILOVER_STORY_ROOM]);

#endif
