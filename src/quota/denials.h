/*
 * What weir knows of keys without asking Redis: denials, what voids them, and what is counted while
 * Redis is away.
 *
 * A worker remembers denials and until when they hold, so that a key that is refused again and
 * again costs Redis nothing: a table of fixed size, in which a new entry overwrites what its slot
 * held. Keys are compared as a whole, so a denial is never taken for another key's. What is in
 * struct quota_settings is shared by all workers.
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
    struct hash_key key;                   /* for hashing keys */
    struct local *local;                   /* counts while Redis is away */
    struct top *limited;                   /* keys of named limits that are refused most: by TOP_REFUSED */
    _Atomic uint32_t resets;               /* how many RESETs have been answered */
    _Atomic uint32_t passes[QUOTA_PASSES]; /* how many calls have passed, by the key's hash modulo QUOTA_PASSES */
};

void quota_settings_init(struct quota_settings *settings);
void quota_settings_fini(struct quota_settings *settings);

/*
 * Differs from before if this weir may have changed a key with this hash: then a denial remembered before is invalid.
 */
static inline uint32_t quota_changes(const struct quota_settings *settings, uint64_t hash)
{
    return atomic_load_explicit(&settings->resets, memory_order_acquire) +
           atomic_load_explicit(&settings->passes[hash % QUOTA_PASSES], memory_order_acquire);
}

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

/* True if `ask` is still denied, as *outcome says. `changes`: quota_changes of the key now. */
__attribute__((warn_unused_result)) bool denials_find(const struct denials *denials, struct slice key, uint64_t hash,
                                                      unsigned database, uint32_t changes, uint64_t now_ns,
                                                      const struct quota_ask *ask, struct quota_outcome *outcome);

#endif
