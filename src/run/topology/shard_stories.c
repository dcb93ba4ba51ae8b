#include "run/topology/shard_stories.h"

#include "upstream/node/slot_map.h"

static bool is_on(const struct shard_story *shard)
{
    return shard->story.missed_ns != 0;
}

/* Of the member in this row; NULL: no node is there. */
static const struct member *member_at(const struct topology *topology, struct member *const *rows, uint16_t row)
{
    return row < topology->n_masters ? rows[row] : NULL;
}

static void go_on(struct shard_story *shard, const struct topology *topology, struct member *const *rows,
                  uint64_t now_ns)
{
    const struct member *member = member_at(topology, rows, slot_map_row(topology->slots, shard->slot));
    if (member == NULL)
        return;
    uint64_t lost_ns = finder_word(member->finder).lost_ns;
    if (lost_ns != 0)
        failover_story_miss(&shard->story, member->key, lost_ns);
    else
        failover_story_find(&shard->story, member->key, now_ns);
}

/* True if a story that has not been told yet is about this row. */
static bool is_told_of(const struct shard_stories *stories, const struct topology *topology, uint16_t row)
{
    for (int i = 0; i < SHARD_STORIES; i++)
        if (is_on(&stories->all[i]) && slot_map_row(topology->slots, stories->all[i].slot) == row)
            return true;
    return false;
}

static void begin(struct shard_stories *stories, const struct topology *topology, uint16_t row,
                  const struct member *member, uint64_t lost_ns)
{
    struct shard_story *free = NULL;
    uint16_t slot = 0;
    while (slot < SLOT_COUNT && slot_map_row(topology->slots, slot) != row)
        slot++;
    for (int i = 0; i < SHARD_STORIES && free == NULL; i++)
        if (!is_on(&stories->all[i]))
            free = &stories->all[i];
    if (slot == SLOT_COUNT || free == NULL)
        return;
    free->slot = slot;
    failover_story_rest(&free->story, &stories->rest);
    failover_story_miss(&free->story, member->key, lost_ns);
}

void shard_stories_follow(struct shard_stories *stories, const struct topology *topology, struct member *const *rows,
                          uint64_t now_ns)
{
    if (topology->slots == NULL)
        return;
    for (int i = 0; i < SHARD_STORIES; i++)
        if (is_on(&stories->all[i]))
            go_on(&stories->all[i], topology, rows, now_ns);
    for (uint16_t row = 0; row < topology->n_masters; row++) {
        const struct member *member = member_at(topology, rows, row);
        uint64_t lost_ns = member != NULL ? finder_word(member->finder).lost_ns : 0;
        if (lost_ns != 0 && !is_told_of(stories, topology, row))
            begin(stories, topology, row, member, lost_ns);
    }
}

void shard_stories_tell(struct shard_stories *stories, const struct fates *now, uint64_t now_ns, uint64_t after_ns,
                        void (*tell)(void *arg, const char *line), void *arg)
{
    char line[FAILOVER_STORY_ROOM];
    for (int i = 0; i < SHARD_STORIES; i++) {
        struct failover_story *story = &stories->all[i].story;
        uint64_t due_ns = failover_story_due_ns(story, after_ns);
        if (due_ns != 0 && now_ns >= due_ns && failover_story_tell(story, now, line))
            tell(arg, line);
    }
    stories->rest = *now;
}
