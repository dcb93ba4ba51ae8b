#include "limit/command/key_filter.h"

#include "base/hash.h"

/* Not secret: a client that makes its own keys collide delays only itself. */
static const struct hash_key hash_key = {0, 0};

static void key_filter_set(uint64_t *words, uint64_t hash)
{
    words[hash % KEY_FILTER_WORDS] |= UINT64_C(1) << (hash >> 8 & 63);
    words[(hash >> 16) % KEY_FILTER_WORDS] |= UINT64_C(1) << (hash >> 24 & 63);
}

static bool key_filter_has(const uint64_t *words, uint64_t hash)
{
    return (words[hash % KEY_FILTER_WORDS] >> (hash >> 8 & 63) & 1) != 0 &&
           (words[(hash >> 16) % KEY_FILTER_WORDS] >> (hash >> 24 & 63) & 1) != 0;
}

void key_filter_add(struct key_filter *filter, struct slice key, bool is_read)
{
    uint64_t hash = hash_bytes(hash_key, key);
    filter->is_used = true;
    key_filter_set(filter->all, hash);
    if (!is_read)
        key_filter_set(filter->written, hash);
}

bool key_filter_bars(const struct key_filter *filter, struct slice key, bool is_read)
{
    return filter->is_used && key_filter_has(is_read ? filter->written : filter->all, hash_bytes(hash_key, key));
}
