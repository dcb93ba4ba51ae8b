/*
 * Tells of limits that refuse, delay or only count: at once when one begins, then in one line for each ten seconds. And
 * when newcomers begin to share a subject, for want of places.
 *
 * Looks at the workers' tallies whenever it is asked to; time is an argument. Of clients it knows nothing.
 */
#ifndef WEIR_RUN_WATCH_H
#define WEIR_RUN_WATCH_H

#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"
#include "limit/ledger.h"
#include "limit/policy.h"

#define WATCH_NS (10 * NS_PER_S) /* between two lines about the same limit */

#define WATCH_FULL_NS (60 * NS_PER_S) /* without one that had to share: next time it is told again */

/* Gets the journal's word for it ("refused", "delayed", "shadowed", "subjects") and a line. */
typedef void (*watch_say)(void *arg, enum log_level level, const char *kind, const char *line);

struct watch;

/* The tallies of n workers, which outlive it. */
struct watch *watch_new(struct tally *const *tallies, unsigned n, watch_say say, void *arg);
void watch_free(struct watch *watch);

/* Look at every limit of these policies. */
void watch_look(struct watch *watch, const struct policies *policies, uint64_t now_ns);

/* So many newcomers have had to share a subject until now. */
void watch_look_at_subjects(struct watch *watch, uint64_t overflows, uint64_t now_ns);

#endif
