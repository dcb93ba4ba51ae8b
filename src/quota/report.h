/*
 * The replies of LIMIT commands that report: to a client about itself, to the operator about everybody. Each function
 * appends one reply; nothing is charged or changed.
 */
#ifndef WEIR_QUOTA_REPORT_H
#define WEIR_QUOTA_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/blocks.h"
#include "limit/gate.h"
#include "limit/figures/journal.h"
#include "limit/figures/ledger.h"
#include "limit/policy/policy.h"
#include "limit/figures/top.h"
#include "limit/policy/variant.h"
#include "quota/named.h"
#include "quota/report_filter.h"
#include "resp/build.h"

/* The subject of a report; account.policy is NULL if no policy binds it. */
struct report_subject {
    struct slice name;
    struct account account;
    const struct block *block; /* NULL: no operator has blocked it */
};

/* LIMIT STATUS: subject, policy, mode, how it waits for its share, and the state of every limit of the policy. */
void report_status(struct build *out, const struct policies *policies, const struct report_subject *subject,
                   uint64_t now_ns);

/* A request that LIMIT EXPLAIN is about. */
struct explained_call {
    const struct command *command;
    struct slice request; /* as a client would send it */
    uint32_t argc;
    struct slice lane;       /* of report_lane */
    bool is_of_cluster;      /* `slot` and has_slot are told */
    bool has_slot;           /* all its keys have one */
    uint16_t slot;           /* with has_slot */
    struct slice server;     /* to which it would go; empty: there is only one */
    struct slice server_why; /* why there, for people */
    uint64_t now_ns;
    const char *refuser; /* the limit that turns away newcomers from where the subject comes, whoever they are; NULL */
};

/* LIMIT EXPLAIN: what the gate would decide, which is returned, and which limits bind the command. */
enum gate report_explain(struct build *out, const struct policies *policies, const struct command_table *table,
                         const struct report_subject *subject, const struct explained_call *call);

/* Which kind of lane it would use: none, private or shared. is_private: the client has one of its own in any case. */
struct slice report_lane(const struct command *command, bool is_private);

/* What LIMIT LIST tells of. */
struct report_list {
    const struct policies *policies;
    const struct variants *variants; /* limits of single subjects */
    struct tally *const *tallies;    /* summed over the workers */
    struct top *const *tops;         /* the workers': whom the limits of single subjects refuse */
    unsigned n_workers;
    const struct named *named;
    enum quota_when_down when_down; /* limit-when-down */
    struct report_filter filter;    /* which of them */
};

/* LIMIT LIST: every limit, with its tallies, those of single subjects, and every named one. */
void report_list(struct build *out, const struct report_list *list, uint64_t now_ns);

/* LIMIT BLOCKS: the first n of those that are blocked. */
void report_blocks(struct build *out, const struct shared_set *blocks, size_t n, uint64_t now_ns);

/* What LIMIT TOP tells of. */
struct report_top {
    const struct policies *policies;
    uint32_t block_id; /* of the limit by which blocks refuse; TOP_NO_LIMIT: nobody has been blocked */
    struct top *const *tops;
    unsigned n_workers;
    enum top_by by;
    size_t n; /* rows */
};

/* LIMIT TOP: the heaviest subjects. Out of memory: `out` is broken. */
void report_top(struct build *out, const struct report_top *asked, uint64_t now_ns);

/* LIMIT TOP ... BY limited: the keys of named limits that are refused most, with their prefix. */
void report_top_limited(struct build *out, struct top *limited, size_t n, uint64_t now_ns);

/* LIMIT LOG: the newest events first. */
void report_log(struct build *out, struct journal *journal, size_t n);

/* LIMIT HELP, in the form of Redis' own HELP subcommands. */
void report_help(struct build *out);

#endif
