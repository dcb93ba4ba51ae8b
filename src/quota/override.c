#include "quota/override.h"

#include <string.h>

#include "base/list.h"
#include "base/mem.h"

struct held {
    struct shared_entry entry;
    struct override override;
    char text[]; /* key and rates */
};

static const struct override *override_of(const struct shared_entry *entry)
{
    return &container_of(entry, struct held, entry)->override;
}

static struct held *held_new(const struct override *one)
{
    struct held *held = mem_alloc(sizeof *held + one->key.len + one->rates.len);
    held->override = *one;
    held->override.key.at = memcpy(held->text, one->key.at, one->key.len);
    held->override.rates.at = memcpy(held->text + one->key.len, one->rates.at, one->rates.len);
    shared_entry_init(&held->entry, held->override.key, one->until_ns);
    return held;
}

bool override_is_over(const struct override *override, uint64_t now_ns)
{
    return override->until_ns > 0 && override->until_ns <= now_ns;
}

/* Those that have not expired; one reference. */
static struct shared_set *living(struct shared_set *overrides, uint64_t now_ns)
{
    uint64_t end_ns = shared_set_next_end(overrides);
    return end_ns > 0 && end_ns <= now_ns ? shared_set_living(overrides, false, now_ns) : shared_set_get(overrides);
}

struct shared_set *overrides_with(struct shared_set *before, const struct override *one, uint64_t now_ns)
{
    struct shared_set *others = living(before, now_ns);
    struct shared_set *next = shared_set_with(others, &held_new(one)->entry);
    shared_set_put(others);
    return next;
}

struct shared_set *overrides_without(struct shared_set *before, struct slice key, uint64_t now_ns)
{
    struct shared_set *others = living(before, now_ns);
    struct shared_set *next = shared_set_without(others, key);
    shared_set_put(others);
    return next;
}

const struct override *overrides_find(const struct shared_set *overrides, struct slice key, uint64_t now_ns)
{
    const struct shared_entry *found = shared_set_find(overrides, key);
    return found != NULL && !shared_entry_is_over(found, now_ns) ? override_of(found) : NULL;
}

const struct override *overrides_at(const struct shared_set *overrides, size_t i)
{
    return override_of(shared_set_at(overrides, i));
}
