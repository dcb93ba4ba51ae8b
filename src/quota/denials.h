/*
 * What was denied, and until when: so that a key that is refused again and again costs Redis nothing.
 *
 * A fixed table; a newcomer takes the place of whoever is there. A key is compared whole, so a denial is never another
 * key's. One worker's.
 */
#ifndef WEIR_QUOTA_DENIALS_H
#define WEIR_QUOTA_DENIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/outcome.h"

#define DENIALS_SLOTS 4096
#define DENIALS_KEY_MAX 128 /* longer keys are not remembered */

struct denials;

/* Ends the process when there is no memory; what is not used takes none. */
struct denials *denials_new(void);
void denials_free(struct denials *denials);

/* The question was sent at sent_ns, when `changes` of the key were known. */
void denials_put(struct denials *denials, struct slice key, uint64_t hash, unsigned database, uint32_t changes,
                 uint64_t sent_ns, const struct quota_memory *memory);

/* Is it still denied? */
__attribute__((warn_unused_result)) bool denials_find(const struct denials *denials, struct slice key, uint64_t hash,
                                                      unsigned database, uint32_t changes, uint64_t now_ns,
                                                      const struct quota_ask *ask, struct quota_outcome *outcome);

#endif
