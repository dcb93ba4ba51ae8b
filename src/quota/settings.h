/*
 * What the LIMIT commands of all workers share: counts of changes, which make remembered denials invalid; what is
 * counted while Redis is away; and which keys are limited most. Any thread.
 */
#ifndef WEIR_QUOTA_SETTINGS_H
#define WEIR_QUOTA_SETTINGS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/hash.h"
#include "limit/figures/top.h"
#include "quota/local.h"

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

#endif
