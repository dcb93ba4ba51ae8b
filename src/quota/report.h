/*
 * What the LIMIT commands tell: to a client about itself, to the operator about everybody. Each function appends one
 * reply; nothing is charged or changed.
 */
#ifndef WEIR_QUOTA_REPORT_H
#define WEIR_QUOTA_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/gate.h"
#include "limit/journal.h"
#include "limit/ledger.h"
#include "limit/policy.h"
#include "limit/top.h"
#include "quota/named.h"
#include "resp/build.h"

/* Whose limits: the account's policy is NULL for somebody who is bound by none. */
struct report_subject {
    struct slice name;
    struct account account;
};

/* subject, policy, mode, and how every limit of the policy stands. */
void report_status(struct build *out, const struct policies *policies, const struct report_subject *subject,
                   uint64_t now_ns);

/* What the gate would say to the command, and which limits bind it. `lane` is how it would travel. */
void report_explain(struct build *out, const struct policies *policies, const struct command_table *table,
                    const struct report_subject *subject, const struct ask *ask, struct slice lane);

/* Every limit, with its tallies added up over the workers; and every named one. `when_down` is limit-when-down. */
void report_list(struct build *out, const struct policies *policies, struct tally *const *tallies, unsigned n_workers,
                 const struct named *named, enum quota_when_down when_down, uint64_t now_ns);

/* The heaviest subjects. Out of memory breaks `out`. */
void report_top(struct build *out, struct top *const *tops, unsigned n_workers, enum top_by by, size_t n,
                uint64_t now_ns);

/* The keys of named limits that are limited most, as they are called in Redis. */
void report_top_limited(struct build *out, struct top *limited, size_t n, uint64_t now_ns);

/* The newest events first. */
void report_log(struct build *out, struct journal *journal, size_t n);

/* As Redis' containers answer HELP. */
void report_help(struct build *out);

#endif
