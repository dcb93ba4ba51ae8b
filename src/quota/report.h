/*
 * Replies of LIMIT commands that report: to a client about itself, and to the operator about all
 * limits and clients.
 *
 * Each function appends one reply, or a part of one, and charges nothing. Out of memory: `out` is
 * broken.
 */
#ifndef WEIR_QUOTA_REPORT_H
#define WEIR_QUOTA_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/blocks.h"
#include "limit/gate.h"
#include "limit/figures/journal.h"
#include "limit/figures/registry.h"
#include "limit/figures/slowlog.h"
#include "limit/policy/policy.h"
#include "limit/figures/top.h"
#include "limit/policy/variant.h"
#include "quota/named.h"
#include "resp/build.h"

/* The subject of a report. target.policy is NULL if no policy applies to the subject. */
struct report_subject {
    struct slice name;
    struct charge_target target;
    const struct block *block; /* NULL: no operator has blocked the subject */
};

/*
 * LIMIT STATUS: subject, policy, mode, waits for its share, and the state of each limit of the
 * policy.
 */
void report_status(struct build *out, const struct policies *policies,
                   const struct report_subject *subject, uint64_t now_ns);

/* A request that LIMIT EXPLAIN is about. */
struct explained_call {
    const struct command *command;
    struct slice request; /* as a client would send it */
    uint32_t argc;
    struct slice lane;  /* the result of report_lane */
    bool is_of_cluster; /* `slot` and has_slot are reported */
    bool has_slot;      /* all keys have one slot */
    uint16_t slot;      /* valid with has_slot */
    /* the server that would get the request; empty: weir has only one server */
    struct slice server;
    struct slice server_why; /* the reason for that server, as text */
    uint64_t now_ns;
    const char *refuser; /* the limit that refuses all new clients of that listener; NULL: none */
};

/*
 * LIMIT EXPLAIN: writes the decision of the gate, and the limits that apply to the command. Returns
 * the decision.
 */
enum gate report_explain(struct build *out, const struct policies *policies,
                         const struct command_table *table, const struct report_subject *subject,
                         const struct explained_call *call);

/*
 * Returns which kind of lane the command would use: none, private or shared. is_private: the client
 * has a private lane in any case.
 */
struct slice report_lane(const struct command *command, bool is_private);

#define REPORT_GLOB_MAX 128

/* Which limits LIMIT LIST shows. */
struct report_filter {
    struct slice glob; /* limits with a name that matches this pattern, in either case; "": all */
    /*
     * Not NULL: only limits that refuse now. Indexed by limit id; the values are bits of enum
     * offender_kind. Named limits are looked up in `limited`.
     */
    const _Atomic uint8_t *stopping;
    struct top *limited;
};

/* True if the pattern is short enough and complete. */
bool report_filter_is_good(const struct report_filter *filter);

/* The sources of LIMIT LIST. */
struct report_list {
    const struct policies *policies;
    const struct variants *variants;              /* limits of single subjects */
    struct limit_counters *const *limit_counters; /* summed over the workers */
    /* of the workers: which subjects are refused, for limits of single subjects */
    struct top *const *tops;
    unsigned n_workers;
    const struct named *named;
    enum quota_when_down when_down; /* limit-when-down */
    struct report_filter filter;
};

/* LIMIT LIST: each limit with its counters, limits of single subjects, and each named limit. */
void report_list(struct build *out, const struct report_list *list, uint64_t now_ns);

/* LIMIT BLOCKS: the first n blocked subjects. */
void report_blocks(struct build *out, const struct shared_set *blocks, size_t n, uint64_t now_ns);

/* The sources of LIMIT TOP. */
struct report_top {
    const struct policies *policies;
    uint32_t block_id; /* id of the limit by which blocks refuse; or TOP_NO_LIMIT */
    struct top *const *tops;
    unsigned n_workers;
    enum top_by by;
    size_t n; /* number of rows */
};

/* LIMIT TOP: the heaviest subjects. */
void report_top(struct build *out, const struct report_top *asked, uint64_t now_ns);

/* LIMIT TOP ... BY limited: the most refused keys of named limits, with their prefix. */
void report_top_limited(struct build *out, struct top *limited, size_t n, uint64_t now_ns);

/* LIMIT LOG: the newest events first. */
void report_log(struct build *out, struct journal *journal, size_t n);

#define SLOW_WAITS_ROOM 128

/*
 * Prints the names of a set of wait reasons, separated by commas. Returns the number of bytes,
 * without the NUL.
 */
typedef size_t slow_waits_print(unsigned waits, char out[SLOW_WAITS_ROOM]);

/* LIMIT SLOWLOG with these n > 0 words: the subcommands and replies of Redis' SLOWLOG. */
void report_slowlog(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n,
                    slow_waits_print *print_waits);

/* LIMIT HELP, in the form of Redis' own HELP subcommands. */
void report_help(struct build *out);

/* ---- fields of maps ---- */

/* These functions write one field: its name, and a text (NULL: nil) or a number. */
void report_field(struct build *out, const char *name, struct slice value);
void report_text(struct build *out, const char *name, const char *text);
void report_number(struct build *out, const char *name, uint64_t value);

/* Writes six fields of a configured limit: limit, what, rate, burst, per, over. */
void report_limit(struct build *out, const struct limit *limit);

/*
 * True if an operator has set the limit for one subject, or for a time. A map then has
 * REPORT_SET_FIELDS more fields.
 */
#define REPORT_SET_FIELDS 2
bool report_is_set(const struct limit *limit);

/* Writes the fields of a limit for one subject, if the limit has them: the subject, and the end. */
void report_set_fields(struct build *out, const struct limit *limit, struct slice subject,
                       uint64_t now_ns);

/* Writes two fields: why a subject is blocked, and until when. */
void report_block(struct build *out, const struct block *block, uint64_t now_ns);

/* Writes `ends_in_ms`, the time until until_ns. until_ns 0: -1, no end. */
void report_end(struct build *out, uint64_t until_ns, uint64_t now_ns);

#endif
