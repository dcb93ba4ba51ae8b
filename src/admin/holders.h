/*
 * Who is behind what a limit does: whom it refuses most, and the fullest subjects that are known.
 */
#ifndef WEIR_ADMIN_HOLDERS_H
#define WEIR_ADMIN_HOLDERS_H

#include "admin/snapshot.h"

#define HOLDERS_MAX (2 * SNAPSHOT_HOLDERS)

struct holder {
    struct slice subject;    /* into the snapshot */
    double used;             /* 0 to 1; below 0: not known */
    uint64_t refused_per_s;  /* by all limits of its policy; not by a block */
    uint64_t commands_per_s; /* 0 also where it is not among the heaviest */
};

/*
 * What refuses that subject most: the rule of a limit, or "block", where an operator has blocked it. NULL: nothing
 * does, or it is not known.
 */
const char *holders_refuser(const struct snapshot *snapshot, const struct top_entry *row);

/* Of snapshot->limits[i]: whom it refuses, if it does, then the fullest. Returns how many. */
size_t holders_of(const struct snapshot *snapshot, size_t i, struct holder out[HOLDERS_MAX]);

#endif
