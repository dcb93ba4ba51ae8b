/*
 * Logs when limits refuse, delay or (in shadow mode) would refuse, and whom: at once when one begins to, then a line
 * every ten seconds; and when new clients begin to share an overflow subject because the table is full.
 *
 * Looks at the workers' tallies whenever it is called; time is an argument. Subjects are counted exactly up to
 * WATCH_SUBJECTS_MAX a line, and for WATCH_CROWDS_MAX limits at a time: beyond that a line says "at least", or names
 * nobody.
 */
#ifndef WEIR_RUN_WATCH_H
#define WEIR_RUN_WATCH_H

#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"
#include "limit/figures/ledger.h"
#include "limit/policy/policy.h"
#include "limit/figures/whom.h"

#define WATCH_NS (10 * NS_PER_S) /* between two lines about the same limit */

#define WATCH_SUBJECTS_MAX 256 /* counted for one line */
#define WATCH_CROWDS_MAX 64

#define WATCH_FULL_NS (60 * NS_PER_S) /* after so long without one that had to share, the next is logged again */

/*
 * Logs a line; `kind` is its word in the journal ("refused", "delayed", "shadowed", "subjects"), `about` the same for
 * lines that differ in their numbers alone: of the same limit, and of the same subjects.
 */
typedef void (*watch_say)(void *arg, enum log_level level, const char *kind, const char *about, const char *line);

struct watch;

/*
 * `tallies` and `whoms`: those of n workers, which outlive it. `stopping`, by limit id, is kept up to date for others
 * to read: bit k while a line about that kind has been due within the last WATCH_NS. NULL: nobody wants it.
 */
struct watch *watch_new(struct tally *const *tallies, struct whom *const *whoms, _Atomic uint8_t *stopping, unsigned n,
                        watch_say say, void *arg);
void watch_free(struct watch *watch);

/* Look at every limit of these policies, and at one that is of none of them; NULL: there is none. */
void watch_look(struct watch *watch, const struct policies *policies, const struct limit *other, uint64_t now_ns);

/* `overflows`: subjects_overflows now. */
void watch_look_at_subjects(struct watch *watch, uint64_t overflows, uint64_t now_ns);

#endif
