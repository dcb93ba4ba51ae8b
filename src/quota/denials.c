#include "quota/denials.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

struct denial {
    uint64_t hash;
    uint64_t sent_ns; /* 0: free */
    uint32_t changes;
    uint32_t database;
    uint32_t key_len;
    char key[DENIALS_KEY_MAX];
    struct quota_memory memory;
};

struct denials {
    struct denial slots[DENIALS_SLOTS];
};

struct denials *denials_new(void)
{
    return mem_zalloc(1, sizeof(struct denials));
}

void denials_free(struct denials *denials)
{
    free(denials);
}

void denials_put(struct denials *denials, struct slice key, uint64_t hash, unsigned database,
                 uint32_t changes, uint64_t sent_ns, const struct quota_memory *memory)
{
    if (key.len > DENIALS_KEY_MAX)
        return;
    struct denial *denial = &denials->slots[hash % DENIALS_SLOTS];
    denial->hash = hash;
    denial->sent_ns = sent_ns;
    denial->changes = changes;
    denial->database = database;
    denial->key_len = (uint32_t)key.len;
    memcpy(denial->key, key.at, key.len);
    denial->memory = *memory;
}

bool denials_find(const struct denials *denials, struct slice key, uint64_t hash, unsigned database,
                  uint32_t changes, uint64_t now_ns, const struct decision_request *ask,
                  struct quota_outcome *outcome)
{
    const struct denial *denial = &denials->slots[hash % DENIALS_SLOTS];
    if (denial->sent_ns == 0 || denial->hash != hash || denial->changes != changes ||
        denial->database != database || now_ns < denial->sent_ns ||
        !slice_eq(key, slice_of(denial->key, denial->key_len)))
        return false;
    return quota_recall(&denial->memory, ask, now_ns - denial->sent_ns, outcome);
}

void quota_settings_init(struct quota_settings *settings)
{
    if (getrandom(&settings->key, sizeof settings->key, 0) != (ssize_t)sizeof settings->key)
        abort();
    settings->local = local_new();
    settings->limited = top_new();
}

void quota_settings_fini(struct quota_settings *settings)
{
    local_free(settings->local);
    top_free(settings->limited);
}
