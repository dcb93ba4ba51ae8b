/*
 * A spell begins with the first decision of its kind and ends after ten seconds without one. A spell of newcomers that
 * share a subject ends after a minute; only its beginning is logged.
 */
#include "run/watch.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

#define LINE_ROOM 256

/* What is logged of a limit. */
static const struct kind {
    const char *name;
    const char *begins;
    const char *did;
    size_t offset; /* in struct tally */
} kinds[] = {
    {"refused", "begins to refuse", "refused", offsetof(struct tally, refused)},
    {"delayed", "begins to delay", "delayed", offsetof(struct tally, delayed)},
    {"shadowed", "would begin to refuse", "would have refused", offsetof(struct tally, shadowed)},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

struct spell {
    uint64_t told;     /* the sum that has been logged */
    uint64_t since_ns; /* of the last line */
    bool is_on;
};

struct watch {
    struct tally *const *tallies;
    unsigned n_tallies;
    watch_say say;
    void *arg;
    struct spell (*spells)[N_KINDS]; /* by limit id */
    struct spell full;               /* since_ns: of the last newcomer */
};

struct watch *watch_new(struct tally *const *tallies, unsigned n, watch_say say, void *arg)
{
    struct watch *watch = mem_zalloc(1, sizeof *watch);
    *watch = (struct watch){tallies, n, say, arg, mem_zalloc(LEDGER_LIMITS_MAX, sizeof *watch->spells), {0}};
    return watch;
}

void watch_free(struct watch *watch)
{
    free(watch->spells);
    free(watch);
}

static uint64_t sum(const struct watch *watch, uint16_t id, const struct kind *kind)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < watch->n_tallies; i++) {
        const char *tally = (const char *)&watch->tallies[i][id];
        total +=
            atomic_load_explicit((const _Atomic uint64_t *)(const void *)(tally + kind->offset), memory_order_relaxed);
    }
    return total;
}

/* took_ns is 0 when it begins. */
static void tell(const struct watch *watch, const struct limit *limit, const struct kind *kind, uint64_t n,
                 uint64_t took_ns)
{
    char line[LINE_ROOM];
    const char *what = unit_noun((enum unit)limit->unit), *many = n == 1 ? "" : "s";
    if (took_ns == 0)
        snprintf(line, sizeof line, "limit %s %s: %" PRIu64 " %s%s so far", limit->label, kind->begins, n, what, many);
    else
        snprintf(line, sizeof line, "limit %s %s %" PRIu64 " %s%s in %" PRIu64 " s", limit->label, kind->did, n, what,
                 many, (took_ns + NS_PER_S / 2) / NS_PER_S);
    watch->say(watch->arg, LOG_INFO, kind->name, line);
}

static void look_at(struct watch *watch, const struct limit *limit, size_t k, uint64_t now_ns)
{
    struct spell *spell = &watch->spells[limit->id][k];
    uint64_t total = sum(watch, limit->id, &kinds[k]);
    bool is_due = spell->is_on && now_ns - spell->since_ns >= WATCH_NS;
    if (total == spell->told) {
        spell->is_on = spell->is_on && !is_due;
        return;
    }
    if (spell->is_on && !is_due)
        return;
    tell(watch, limit, &kinds[k], total - spell->told, spell->is_on ? now_ns - spell->since_ns : 0);
    *spell = (struct spell){total, now_ns, true};
}

void watch_look(struct watch *watch, const struct policies *policies, uint64_t now_ns)
{
    for (size_t p = 0; p < policies_count(policies); p++) {
        const struct policy *policy = policies_at(policies, p);
        for (size_t i = 0; i < policy->n_limits; i++)
            for (size_t k = 0; k < N_KINDS; k++)
                look_at(watch, &policy->limits[i], k, now_ns);
    }
}

void watch_look_at_subjects(struct watch *watch, uint64_t overflows, uint64_t now_ns)
{
    struct spell *full = &watch->full;
    if (overflows == full->told) {
        full->is_on = full->is_on && now_ns - full->since_ns < WATCH_FULL_NS;
        return;
    }
    if (!full->is_on)
        watch->say(watch->arg, LOG_WARN, "subjects",
                   "all max-subjects places are taken: newcomers share one subject for each policy; raise max-subjects "
                   "in [weir]");
    *full = (struct spell){overflows, now_ns, true};
}
