/*
 * A spell is a time in which one limit makes decisions of one kind. A spell begins with the first
 * of these decisions, and ends after ten seconds without one. Another kind of spell is of new
 * subjects that share an overflow subject. That spell ends after a minute; only its beginning is
 * logged.
 */
#include "run/watch.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LINE_ROOM 512
#define NAMED 3 /* subjects named in one line */

_Static_assert(WATCH_CROWDS_MAX < UINT8_MAX, "a crowd's number fits a byte");

/* How one kind of decision of a limit is logged. */
static const struct kind {
    const char *name;
    const char *begins, *did;
    const char *would_begin, *would_have; /* NULL: the plain words are used */
    size_t offset;                        /* in struct limit_counters */
} kinds[] = {
    {"refused", "begins to refuse", "refused", NULL, NULL,
     offsetof(struct limit_counters, refused)},
    {"delayed", "begins to delay", "delayed", "would begin to delay", "would have delayed",
     offsetof(struct limit_counters, delayed)},
    {"shadowed", "would begin to refuse", "would have refused", NULL, NULL,
     offsetof(struct limit_counters, shadowed)},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

_Static_assert(N_KINDS == OFFENDER_KINDS, "in the order of enum offender_kind");

struct spell {
    uint64_t told;     /* the counter's value that has been logged */
    uint64_t since_ns; /* time of the last line */
    bool is_on;
    bool is_expected; /* a spell has begun, and its subjects are not known yet */
    uint8_t crowd;    /* index of the spell's crowd plus one; 0: no crowd */
};

/* The subjects that one limit has stopped since its last line. */
struct crowd {
    struct spell *spell; /* the spell that the crowd belongs to; NULL: the crowd is free */
    bool is_looked_at;
    size_t n;
    bool is_cut; /* the limit has stopped more subjects than the crowd has room for */
    uint8_t name_len[NAMED];
    char names[NAMED][OFFENDER_NAME_MAX];
    uint64_t hashes[WATCH_SUBJECTS_MAX];
};

struct watch {
    struct limit_counters *const *limit_counters;
    struct offenders *const *all_offenders;
    _Atomic uint8_t *stopping;
    unsigned n_workers;
    watch_say say;
    void *arg;
    struct spell (*spells)[N_KINDS]; /* by limit id */
    /* since_ns: when the last new subject had to share an overflow subject */
    struct spell full;
    struct crowd crowds[WATCH_CROWDS_MAX];
    struct offender rows[OFFENDERS_MAX]; /* buffer of look_at_offenders */
};

struct watch *watch_new(struct limit_counters *const *limit_counters,
                        struct offenders *const *all_offenders, _Atomic uint8_t *stopping,
                        unsigned n, watch_say say, void *arg)
{
    struct watch *watch = mem_zalloc(1, sizeof *watch);
    watch->limit_counters = limit_counters;
    watch->all_offenders = all_offenders;
    watch->stopping = stopping;
    watch->n_workers = n;
    watch->say = say;
    watch->arg = arg;
    watch->spells = mem_zalloc(REGISTRY_LIMITS_MAX, sizeof *watch->spells);
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
    for (unsigned i = 0; i < watch->n_workers; i++) {
        const char *counters = (const char *)&watch->limit_counters[i][id];
        total +=
            atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counters + kind->offset),
                                 memory_order_relaxed);
    }
    return total;
}

/* ---- recent offenders ---- */

static struct crowd *crowd_of(struct watch *watch, const struct spell *spell)
{
    return spell->crowd > 0 ? &watch->crowds[spell->crowd - 1U] : NULL;
}

/* Returns the spell's crowd, or a new crowd. NULL: all crowds are in use. */
static struct crowd *need_crowd(struct watch *watch, struct spell *spell)
{
    for (uint8_t i = 0; spell->crowd == 0 && i < WATCH_CROWDS_MAX; i++) {
        struct crowd *crowd = &watch->crowds[i];
        if (crowd->spell != NULL)
            continue;
        crowd->spell = spell;
        crowd->is_cut = false;
        crowd->n = 0;
        spell->crowd = (uint8_t)(i + 1U);
    }
    return crowd_of(watch, spell);
}

static void let_crowd_go(struct watch *watch, struct spell *spell)
{
    struct crowd *crowd = crowd_of(watch, spell);
    if (crowd != NULL)
        crowd->spell = NULL;
    spell->crowd = 0;
}

static void add_to_crowd(struct crowd *crowd, const struct offender *row, bool is_cut)
{
    crowd->is_cut |= is_cut;
    for (size_t i = 0; i < crowd->n; i++)
        if (crowd->hashes[i] == row->hash)
            return;
    if (crowd->n == WATCH_SUBJECTS_MAX) {
        crowd->is_cut = true;
        return;
    }
    if (crowd->n < NAMED) {
        memcpy(crowd->names[crowd->n], row->name, sizeof row->name);
        crowd->name_len[crowd->n] = row->name_len;
    }
    crowd->hashes[crowd->n++] = row->hash;
}

/* Frees the crowds of limits that a reload has removed. */
static void let_orphans_go(struct watch *watch)
{
    for (size_t i = 0; i < WATCH_CROWDS_MAX; i++) {
        struct crowd *crowd = &watch->crowds[i];
        if (crowd->spell != NULL && !crowd->is_looked_at)
            let_crowd_go(watch, crowd->spell);
        crowd->is_looked_at = false;
    }
}

static void look_at_offenders(struct watch *watch)
{
    for (unsigned w = 0; w < watch->n_workers && watch->all_offenders != NULL; w++) {
        bool is_cut;
        size_t n = offenders_take(watch->all_offenders[w], watch->rows, &is_cut);
        for (size_t i = 0; i < n; i++) {
            const struct offender *row = &watch->rows[i];
            struct crowd *crowd = need_crowd(watch, &watch->spells[row->limit][row->kind]);
            if (crowd != NULL)
                add_to_crowd(crowd, row, is_cut);
        }
    }
}

/*
 * ", of user:a", ", of 2 subjects: user:a, user:b", ", of at least 256 subjects: user:a, user:b,
 * user:c ..."
 */
static void print_crowd(const struct crowd *crowd, char *out, size_t room)
{
    int len = 0;
    out[0] = '\0';
    if (crowd == NULL || crowd->n == 0)
        return;
    if (crowd->n > 1 || crowd->is_cut)
        len = snprintf(out, room, ", of %s%zu subject%s: ", crowd->is_cut ? "at least " : "",
                       crowd->n, crowd->n == 1 ? "" : "s");
    else
        len = snprintf(out, room, ", of ");
    for (size_t i = 0; i < crowd->n && i < NAMED; i++)
        len += snprintf(out + len, room - (size_t)len, "%s%.*s", i > 0 ? ", " : "",
                        crowd->name_len[i], crowd->names[i]);
    if (crowd->n > NAMED || crowd->is_cut)
        snprintf(out + len, room - (size_t)len, " ...");
}

/*
 * Returns a hash of the crowd that does not depend on the order of the subjects. For a cut crowd
 * the hash depends only on the number of subjects.
 */
static uint64_t sum_of(const struct crowd *crowd)
{
    uint64_t sum = crowd->n;
    for (size_t i = 0; i < crowd->n && !crowd->is_cut; i++)
        sum += crowd->hashes[i] * UINT64_C(0x9e3779b97f4a7c15);
    return sum;
}

/* ---- log lines ---- */

/* Logs one line. took_ns is 0 for the first line of a spell. */
static void watch_tell(const struct watch *watch, const struct limit *limit,
                       const struct kind *kind, bool is_shadow, uint64_t n, uint64_t took_ns,
                       const struct crowd *crowd)
{
    bool is_told_as_would = is_shadow && kind->would_begin != NULL;
    const char *begins = is_told_as_would ? kind->would_begin : kind->begins;
    const char *did = is_told_as_would ? kind->would_have : kind->did;
    char line[LINE_ROOM];
    char stopped_names[NAMED * (OFFENDER_NAME_MAX + 2) + 64];
    print_crowd(crowd, stopped_names, sizeof stopped_names);
    /* Redis' error for too many clients names no limit: the line quotes the error. */
    bool limits_connections =
        kind == kinds && (limit->unit == UNIT_CONNECTIONS || limit->unit == UNIT_CONNECTS);
    const char *read = limits_connections ? " (clients get: max number of clients reached)" : "";
    const char *what = unit_noun((enum unit)limit->unit), *many = n == 1 ? "" : "s";
    if (took_ns == 0)
        snprintf(line, sizeof line, "limit %s %s: %" PRIu64 " %s%s so far%s%s", limit->label,
                 begins, n, what, many, stopped_names, read);
    else
        snprintf(line, sizeof line, "limit %s %s %" PRIu64 " %s%s in %" PRIu64 " s%s%s",
                 limit->label, did, n, what, many, (took_ns + NS_PER_S / 2) / NS_PER_S,
                 stopped_names, read);
    char about[LIMIT_LABEL_MAX + 64];
    snprintf(about, sizeof about, "%s %s %016" PRIx64, limit->label,
             took_ns == 0 ? "begins" : "goes on", crowd != NULL ? sum_of(crowd) : 0);
    watch->say(watch->arg, LOG_INFO, kind->name, about, line);
}

/* Sets or clears the bit that says that the limit stops subjects now. */
static void note_stopping(const struct watch *watch, uint16_t id, size_t k, bool is_on)
{
    if (watch->stopping == NULL)
        return;
    uint8_t bit = (uint8_t)(1U << k);
    if (is_on)
        atomic_fetch_or_explicit(&watch->stopping[id], bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&watch->stopping[id], (uint8_t)~bit, memory_order_relaxed);
}

static void watch_look_at(struct watch *watch, const struct limit *limit, bool is_shadow, size_t k,
                          uint64_t now_ns)
{
    struct spell *spell = &watch->spells[limit->id][k];
    struct crowd *crowd = crowd_of(watch, spell);
    if (crowd != NULL)
        crowd->is_looked_at = true;
    uint64_t total = sum(watch, limit->id, &kinds[k]);
    bool is_due = spell->is_on && now_ns - spell->since_ns >= WATCH_NS;
    if (total == spell->told) {
        spell->is_on = spell->is_on && !is_due;
        if (!spell->is_on)
            let_crowd_go(watch, spell);
        note_stopping(watch, limit->id, k, spell->is_on);
        return;
    }
    note_stopping(watch, limit->id, k, true);
    if (spell->is_on && !is_due)
        return;
    /*
     * The offenders are noted a little later than the counter: the names of the offenders are known
     * at the next call.
     */
    if (watch->all_offenders != NULL && !spell->is_on && !spell->is_expected && crowd == NULL) {
        spell->is_expected = true;
        return;
    }
    watch_tell(watch, limit, &kinds[k], is_shadow, total - spell->told,
               spell->is_on ? now_ns - spell->since_ns : 0, crowd);
    let_crowd_go(watch, spell);
    *spell = (struct spell){.told = total, .since_ns = now_ns, .is_on = true};
}

void watch_look(struct watch *watch, const struct policies *policies, const struct limit *other,
                uint64_t now_ns)
{
    look_at_offenders(watch);
    for (size_t p = 0; p < policies_count(policies); p++) {
        const struct policy *policy = policies_at(policies, p);
        for (size_t i = 0; i < policy->n_limits; i++)
            for (size_t k = 0; k < N_KINDS; k++)
                watch_look_at(watch, &policy->limits[i], policy->shadows >> i & 1, k, now_ns);
    }
    for (size_t k = 0; k < N_KINDS && other != NULL; k++)
        watch_look_at(watch, other, false, k, now_ns);
    let_orphans_go(watch);
}

void watch_look_at_subjects(struct watch *watch, uint64_t overflows, uint64_t now_ns)
{
    struct spell *full = &watch->full;
    if (overflows == full->told) {
        full->is_on = full->is_on && now_ns - full->since_ns < WATCH_FULL_NS;
        return;
    }
    if (!full->is_on)
        watch->say(
            watch->arg, LOG_WARN, "subjects", "",
            "max-subjects is reached: new subjects share one state for each policy; raise max-subjects in "
            "[weir]");
    *full = (struct spell){.told = overflows, .since_ns = now_ns, .is_on = true};
}
