#include "limit/blocks.h"

#include <string.h>

#include "base/list.h"
#include "base/mem.h"

struct held {
    struct shared_entry entry;
    struct block block;
    char text[]; /* name and reason */
};

static const struct block *block_of(const struct shared_entry *entry)
{
    return entry != NULL ? &container_of(entry, struct held, entry)->block : NULL;
}

struct shared_set *blocks_with(const struct shared_set *before, const struct block *one)
{
    struct held *held = mem_alloc(sizeof *held + one->subject.len + one->reason.len);
    held->block = *one;
    held->block.subject.at = memcpy(held->text, one->subject.at, one->subject.len);
    held->block.reason.at = held->text + one->subject.len;
    if (one->reason.len > 0)
        memcpy(held->text + one->subject.len, one->reason.at, one->reason.len);
    shared_entry_init(&held->entry, held->block.subject, one->until_ns);
    return shared_set_with(before, &held->entry);
}

const struct block *blocks_find(const struct shared_set *blocks, struct slice subject)
{
    return block_of(shared_set_find(blocks, subject));
}

const struct block *blocks_at(const struct shared_set *blocks, size_t i)
{
    return block_of(shared_set_at(blocks, i));
}
