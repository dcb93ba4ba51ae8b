/*
 * What the LIMIT commands of all workers share: which key has changed, what is counted here while Redis is away, and whom
 * named limits limit most. Any thread.
 */
#ifndef WEIR_QUOTA_SETTINGS_H
#define WEIR_QUOTA_SETTINGS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/hash.h"
#include "limit/top.h"
#include "quota/local.h"

#define QUOTA_PASSES 4096

/* What was remembered of denials before one of the counts changed is void. */
struct quota_settings {
    struct hash_key key;                   /* of the names of keys */
    struct local *local;                   /* what is counted here while Redis is away */
    struct top *limited;                   /* keys of named limits that are limited most: by TOP_REFUSED */
    _Atomic uint32_t resets;               /* how often a RESET has been answered */
    _Atomic uint32_t passes[QUOTA_PASSES]; /* how often a call on a key has passed, by the key's hash */
};

void quota_settings_init(struct quota_settings *settings);
void quota_settings_fini(struct quota_settings *settings);

/* Changes as long as anything may have changed on a key with this hash through this weir. */
static inline uint32_t quota_changes(const struct quota_settings *settings, uint64_t hash)
{
    return atomic_load_explicit(&settings->resets, memory_order_acquire) +
           atomic_load_explicit(&settings->passes[hash % QUOTA_PASSES], memory_order_acquire);
}

#endif
