#include "run/topology/failover_story.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define BRIEF_NS (1 * NS_PER_S) /* a shorter absence that no request has noticed is not logged */

void failover_story_rest(struct failover_story *story, const struct fates *now)
{
    if (story->missed_ns == 0)
        story->before = *now;
}

void failover_story_miss(struct failover_story *story, const char *was, uint64_t since_ns)
{
    story->found_ns = 0;
    if (story->missed_ns != 0)
        return;
    story->missed_ns = since_ns;
    snprintf(story->was, sizeof story->was, "%s", was);
}

void failover_story_find(struct failover_story *story, const char *is, uint64_t now_ns)
{
    if (story->missed_ns == 0 || (story->found_ns != 0 && strcmp(story->is, is) == 0))
        return;
    story->found_ns = now_ns;
    snprintf(story->is, sizeof story->is, "%s", is);
}

uint64_t failover_story_due_ns(const struct failover_story *story, uint64_t after_ns)
{
    return story->found_ns != 0 ? story->found_ns + after_ns : 0;
}

static bool failover_story_is_any(const struct fates *fates)
{
    for (int fate = 0; fate < FATE_COUNT; fate++)
        if (fates->n[fate] > 0)
            return true;
    return false;
}

bool failover_story_tell(struct failover_story *story, const struct fates *now,
                         char line[FAILOVER_STORY_ROOM])
{
    struct fates n;
    bool is_same = strcmp(story->was, story->is) == 0;
    uint64_t took_ns = story->found_ns > story->missed_ns ? story->found_ns - story->missed_ns : 0;
    for (int fate = 0; fate < FATE_COUNT; fate++)
        n.n[fate] = now->n[fate] - story->before.n[fate];
    size_t length = is_same ? (size_t)snprintf(line, FAILOVER_STORY_ROOM,
                                               "upstream %s is the master again", story->is)
                            : (size_t)snprintf(line, FAILOVER_STORY_ROOM,
                                               "failover: upstream %s is the master in place of %s",
                                               story->is, story->was);
    snprintf(line + length, FAILOVER_STORY_ROOM - length,
             ", after %.3f s without a master; commands that waited: %" PRIu64 ", refused: %" PRIu64
             ", retried: %" PRIu64 "; connections lost with commands in flight: %" PRIu64,
             (double)took_ns / NS_PER_S, n.n[FATE_WAITED], n.n[FATE_REFUSED], n.n[FATE_AGAIN],
             n.n[FATE_LOST]);
    story->missed_ns = story->found_ns = 0;
    story->before = *now;
    return !is_same || took_ns >= BRIEF_NS || failover_story_is_any(&n);
}
