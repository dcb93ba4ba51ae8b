/*
 * The subjects that cause a limit's state: the subjects refused most, and the known subjects with
 * most usage.
 */
#ifndef WEIR_ADMIN_HOLDERS_H
#define WEIR_ADMIN_HOLDERS_H

#include "admin/snapshot.h"

#define HOLDERS_MAX (2 * SNAPSHOT_HOLDERS)

struct holder {
    struct slice subject;    /* points into the snapshot */
    double used;             /* usage, 0 to 1; negative: unknown */
    uint64_t refused_per_s;  /* by all limits of the subject's policy, without blocks */
    uint64_t commands_per_s; /* 0 if the subject is not among the heaviest */
};

/*
 * Returns what refuses the subject most: a limit's rule, or "block". NULL if nothing refuses the
 * subject, or the limit is unknown.
 */
const char *holders_refuser(const struct snapshot *snapshot, const struct top_entry *row);

/*
 * Lists subjects of snapshot->limits[i]: refused subjects if the limit refuses, then the subjects
 * with most usage. Returns the number of listed subjects.
 */
size_t holders_of(const struct snapshot *snapshot, size_t i, struct holder out[HOLDERS_MAX]);

#endif
