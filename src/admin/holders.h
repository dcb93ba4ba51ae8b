/*
 * Who is behind what a limit does: the fullest subjects that are known, and who of its policy is refused most.
 */
#ifndef WEIR_ADMIN_HOLDERS_H
#define WEIR_ADMIN_HOLDERS_H

#include "admin/snapshot.h"

#define HOLDERS_MAX (SNAPSHOT_HOLDERS + 5)

struct holder {
    struct slice subject;    /* into the snapshot */
    double used;             /* 0 to 1; below 0: not known */
    uint64_t refused_per_s;  /* by all limits of its policy */
    uint64_t commands_per_s; /* 0 also where it is not among the heaviest */
};

/* Of snapshot->limits[i]: the fullest first, then those of whom only refusals are known. Returns how many. */
size_t holders_of(const struct snapshot *snapshot, size_t i, struct holder out[HOLDERS_MAX]);

#endif
