/*
 * Counters of one named limit: what became of its calls. Survives reloads, as long as there is a limit of that name.
 *
 * Any thread adds and reads. Reference-counted.
 */
#ifndef WEIR_QUOTA_TALLY_H
#define WEIR_QUOTA_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/histo.h"
#include "base/slice.h"

#define TALLY_NAME_MAX 64

enum tally_result { TALLY_PASSED, TALLY_LIMITED, TALLY_SHADOWED, TALLY_ERROR, TALLY_RESULTS };

struct named_tally {
    _Atomic unsigned holders;
    _Atomic uint64_t results[TALLY_RESULTS];
    struct histo times; /* how long calls without WAIT took; histo_add_shared */
    char name[TALLY_NAME_MAX + 1];
};

/*
 * For a limit of that name, at most TALLY_NAME_MAX bytes; one reference. Ends the process when out of memory.
 */
struct named_tally *named_tally_new(struct slice name);
struct named_tally *named_tally_get(struct named_tally *tally);
void named_tally_put(struct named_tally *tally);

/* A call was answered, after so many ns; 0: not measured. */
void named_tally_add(struct named_tally *tally, enum tally_result result, uint64_t ns);

/* The sum of all results. */
uint64_t named_tally_asked(const struct named_tally *tally);

#endif
