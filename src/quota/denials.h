/*
 * Remembers denials and until when they hold, so that a key that is refused again and again costs Redis nothing.
 *
 * A table of fixed size; a new entry overwrites what its slot held. Keys are compared as a whole, so a denial is never
 * taken for another key's. Belongs to one worker.
 */
#ifndef WEIR_QUOTA_DENIALS_H
#define WEIR_QUOTA_DENIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/outcome.h"

#ifndef DENIALS_SLOTS /* a build may have fewer: see the Makefile */
#define DENIALS_SLOTS 4096
#endif
#define DENIALS_KEY_MAX 128 /* longer keys are not remembered */

struct denials;

/* Ends the process when out of memory. Slots that were never used take no physical memory. */
struct denials *denials_new(void);
void denials_free(struct denials *denials);

/* Remember a denial. It was asked for at sent_ns, when quota_changes of the key was `changes`. */
void denials_put(struct denials *denials, struct slice key, uint64_t hash, unsigned database, uint32_t changes,
                 uint64_t sent_ns, const struct quota_memory *memory);

/* Is `ask` still denied by what is remembered? Then *outcome is set. `changes`: quota_changes of the key now. */
__attribute__((warn_unused_result)) bool denials_find(const struct denials *denials, struct slice key, uint64_t hash,
                                                      unsigned database, uint32_t changes, uint64_t now_ns,
                                                      const struct quota_ask *ask, struct quota_outcome *outcome);

#endif
