/*
 * What has become of the calls of one named limit, as long as there is one of that name: reloads hand it on.
 *
 * Any thread counts and reads. Counted itself: whoever holds it has a reference.
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
    struct histo times; /* of calls that may not wait */
    char name[TALLY_NAME_MAX + 1];
};

/*
 * Of a limit with at most TALLY_NAME_MAX bytes of name, with one reference. Ends the process when there is no memory.
 */
struct named_tally *named_tally_new(struct slice name);
struct named_tally *named_tally_get(struct named_tally *tally);
void named_tally_put(struct named_tally *tally);

/* A call has been answered after so long; 0: that is not measured. */
void named_tally_add(struct named_tally *tally, enum tally_result result, uint64_t ns);

/* How many were answered, whatever they were. */
uint64_t named_tally_asked(const struct named_tally *tally);

#endif
