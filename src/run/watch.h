/*
 * Logs when limits refuse, delay or (in shadow mode) would refuse, and names the subjects. The
 * first line comes when a limit begins to stop commands, then one line every ten seconds. Also logs
 * when new subjects begin to share an overflow subject because the table is full.
 *
 * Reads the workers' counters at each call; time is an argument. Subjects are counted exactly up to
 * WATCH_SUBJECTS_MAX a line, and for WATCH_CROWDS_MAX limits at a time. With more subjects a line
 * says "at least". With more limits a line names no subject.
 */
#ifndef WEIR_RUN_WATCH_H
#define WEIR_RUN_WATCH_H

#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"
#include "limit/figures/registry.h"
#include "limit/policy/policy.h"
#include "limit/figures/offenders.h"

#define WATCH_NS (10 * NS_PER_S) /* between two lines about one limit */

#define WATCH_SUBJECTS_MAX 256 /* subjects counted for one line */
#define WATCH_CROWDS_MAX 64

/* a new subject in an overflow subject is logged only after this time without another one */
#define WATCH_FULL_NS (60 * NS_PER_S)

/*
 * Logs a line. `kind` is the line's word in the journal ("refused", "delayed", "shadowed",
 * "subjects"). `about` is equal for lines that differ only in their numbers: lines about one limit
 * and one set of subjects.
 */
typedef void (*watch_say)(void *arg, enum log_level level, const char *kind, const char *about,
                          const char *line);

struct watch;

/*
 * `limit_counters` and `all_offenders` have an element for each of n workers, and must
 * outlive the watch.
 * `stopping`, by limit id, is written for other parts to read; NULL: no part reads it. Bit k is set
 * from the first decision of kind k (enum offender_kind) until WATCH_NS pass without a decision of
 * that kind.
 */
struct watch *watch_new(struct limit_counters *const *limit_counters,
                        struct offenders *const *all_offenders, _Atomic uint8_t *stopping,
                        unsigned n, watch_say say, void *arg);
void watch_free(struct watch *watch);

/* Checks every limit of these policies, and `other`, a limit of no policy; NULL: no such limit. */
void watch_look(struct watch *watch, const struct policies *policies, const struct limit *other,
                uint64_t now_ns);

/* `overflows`: the current value of subjects_overflows. */
void watch_look_at_subjects(struct watch *watch, uint64_t overflows, uint64_t now_ns);

#endif
