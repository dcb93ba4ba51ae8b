/*
 * What weir knows about keys without asking Redis: cached denials, the counters that invalidate
 * them, and local counts while Redis is unavailable.
 *
 * Each worker caches denials with their expiry, so a key that is refused again and again costs
 * Redis nothing. The cache is a table of fixed size, and a new entry overwrites the old entry at
 * the same index. Keys are compared in full, so a denial never applies to another key.
 *
 * struct quota_settings is shared by all workers. struct denials belongs to one worker.
 */
#ifndef WEIR_QUOTA_DENIALS_H
#define WEIR_QUOTA_DENIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"
#include "limit/figures/top.h"
#include "quota/local.h"
#include "quota/outcome.h"

#define QUOTA_PASSES 4096

struct quota_settings {
    struct hash_key key;
    struct local *local; /* counts while Redis is unavailable */
    struct top *limited; /* most refused keys of named limits: by TOP_REFUSED */
    /* incremented when a call that may make room is sent and when it is answered */
    _Atomic uint32_t resets;
    /* number of calls that have passed, by the key's hash modulo QUOTA_PASSES */
    _Atomic uint32_t passes[QUOTA_PASSES];
};

void quota_settings_init(struct quota_settings *settings);
void quota_settings_fini(struct quota_settings *settings);

/*
 * Returns a number that changes if this process may have changed a key with this hash. Denials
 * cached before the change are invalid.
 */
static inline uint32_t quota_changes(const struct quota_settings *settings, uint64_t hash)
{
    return atomic_load_explicit(&settings->resets, memory_order_acquire) +
           atomic_load_explicit(&settings->passes[hash % QUOTA_PASSES], memory_order_acquire);
}

#ifndef DENIALS_SLOTS /* a build may have fewer: see the Makefile */
#define DENIALS_SLOTS 4096
#endif
#define DENIALS_KEY_MAX 128 /* bytes; denials of longer keys are not cached */

struct denials;

/* Ends the process when out of memory. Entries that were never used take no physical memory. */
struct denials *denials_new(void);
void denials_free(struct denials *denials);

/* Caches a denial. The call was sent at sent_ns, when quota_changes of the key was `changes`. */
void denials_put(struct denials *denials, struct slice key, uint64_t hash, unsigned database,
                 uint32_t changes, uint64_t sent_ns, const struct quota_memory *memory);

/* True if `ask` is still denied, as *outcome says. `changes`: quota_changes of the key now. */
__attribute__((warn_unused_result)) bool denials_find(const struct denials *denials,
                                                      struct slice key, uint64_t hash,
                                                      unsigned database, uint32_t changes,
                                                      uint64_t now_ns,
                                                      const struct decision_request *ask,
                                                      struct quota_outcome *outcome);

#endif
