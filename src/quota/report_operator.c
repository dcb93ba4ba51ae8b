/*
 * Reports for operators: all limits with their counters, blocked subjects, the heaviest subjects,
 * events, and slow requests.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/glob.h"
#include "base/num.h"
#include "limit/figures/offenders.h"
#include "quota/report.h"

#define SLOW_ENTRY_FIELDS 11
#define SLOW_USUAL 10 /* entries of SLOWLOG GET without a number, as in Redis */

/* Returns room for n rows, which the caller frees. NULL: out of memory, and the reply is broken. */
static void *rows_new(struct build *out, size_t n, size_t size)
{
    void *rows = calloc(n > 0 ? n : 1, size);
    out->is_broken |= rows == NULL;
    return rows;
}

/* ---- which limits are shown ---- */

bool report_filter_is_good(const struct report_filter *filter)
{
    return filter->glob.len <= REPORT_GLOB_MAX && glob_is_closed(filter->glob);
}

static struct slice report_operator_lower(struct slice text, char room[REPORT_GLOB_MAX])
{
    size_t len = text.len < REPORT_GLOB_MAX ? text.len : REPORT_GLOB_MAX;
    for (size_t i = 0; i < len; i++)
        room[i] = ascii_lower(text.at[i]);
    return slice_of(room, len);
}

static bool report_operator_is_named_so(const struct report_filter *filter, const char *name)
{
    char glob[REPORT_GLOB_MAX], text[REPORT_GLOB_MAX];
    return filter->glob.len == 0 || glob_match(report_operator_lower(filter->glob, glob),
                                               report_operator_lower(slice_str(name), text));
}

static bool shows(const struct report_filter *filter, const struct limit *limit)
{
    return report_operator_is_named_so(filter, limit->label) &&
           (filter->stopping == NULL ||
            (atomic_load_explicit(&filter->stopping[limit->id], memory_order_relaxed) &
             1U << OFFENDER_REFUSED) != 0);
}

static bool shows_own(const struct report_filter *filter, const struct limit *limit,
                      bool is_refusing)
{
    return report_operator_is_named_so(filter, limit->label) &&
           (filter->stopping == NULL || is_refusing);
}

/* The recently most refused subjects, or keys of named limits. */
struct refused_lately {
    struct top_entry rows[TOP_SUBJECTS];
    size_t n;
};

/*
 * Returns the most refused keys of named limits, which the caller frees. NULL: all limits are
 * shown, or memory is short.
 */
static struct refused_lately *look_for_refused(const struct report_filter *filter, uint64_t now_ns)
{
    struct refused_lately *lately = filter->stopping != NULL ? calloc(1, sizeof *lately) : NULL;
    if (lately != NULL)
        lately->n =
            top_heaviest(&filter->limited, 1, TOP_REFUSED, now_ns, lately->rows, TOP_SUBJECTS);
    return lately;
}

static bool shows_named(const struct report_filter *filter, const struct named_limit *limit,
                        const struct refused_lately *lately)
{
    bool is_refusing = filter->stopping == NULL;
    for (size_t i = 0; lately != NULL && i < lately->n && !is_refusing; i++)
        is_refusing = slice_eq_nocase(slice_of(lately->rows[i].policy, lately->rows[i].policy_len),
                                      slice_str(limit->name));
    return is_refusing && report_operator_is_named_so(filter, limit->name);
}

/* ---- LIMIT LIST ---- */

static uint64_t report_operator_sum(struct limit_counters *const *limit_counters,
                                    unsigned n_workers, uint16_t id, size_t offset)
{
    uint64_t total = 0;
    for (unsigned w = 0; w < n_workers; w++) {
        const char *counters = (const char *)&limit_counters[w][id];
        total += atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counters + offset),
                                      memory_order_relaxed);
    }
    return total;
}

static void tallied(struct build *out, const struct limit *limit,
                    struct limit_counters *const *limit_counters, unsigned n_workers)
{
    report_number(out, "admitted",
                  report_operator_sum(limit_counters, n_workers, limit->id,
                                      offsetof(struct limit_counters, admitted)));
    report_number(out, "delayed",
                  report_operator_sum(limit_counters, n_workers, limit->id,
                                      offsetof(struct limit_counters, delayed)));
    report_number(out, "refused",
                  report_operator_sum(limit_counters, n_workers, limit->id,
                                      offsetof(struct limit_counters, refused)));
    report_number(out, "shadowed",
                  report_operator_sum(limit_counters, n_workers, limit->id,
                                      offsetof(struct limit_counters, shadowed)));
}

/* Writes the rates of single keys, and how long they last; -1: until removed. */
static void list_overrides(struct build *out, const struct shared_set *overrides, uint64_t now_ns)
{
    build_bulk_str(out, "overrides");
    build_array(out, shared_set_count_living(overrides, now_ns));
    for (size_t i = 0; i < shared_set_count(overrides); i++) {
        const struct override *one = overrides_at(overrides, i);
        if (override_is_over(one, now_ns))
            continue;
        build_map(out, 3);
        report_field(out, "key", one->key);
        report_field(out, "rate", one->rates);
        report_end(out, one->until_ns, now_ns);
    }
}

static void list_named(struct build *out, const struct named_limit *limit,
                       enum quota_when_down when_down, uint64_t now_ns)
{
    const struct named_counters *counters = limit->counters;
    build_map(out, 13);
    report_field(out, "limit", slice_str(limit->name));
    report_field(out, "what", slice_str(quota_algorithm(limit->rule.kind)->name));
    report_field(out, "rate", slice_str(limit->rates));
    report_field(out, "tz", slice_str(zone_name(limit->rule.zone)));
    report_field(out, "over", limit->is_shadow ? SLICE("shadow") : SLICE("refuse"));
    report_field(out, "when_down", slice_str(named_when_down(limit, when_down)));
    report_field(out, "penalty",
                 limit->penalty_text != NULL ? slice_str(limit->penalty_text) : SLICE(""));
    report_number(out, "asked", named_counters_asked(counters));
    report_number(out, "passed", count_read(&counters->results[NAMED_PASSED]));
    report_number(out, "limited", count_read(&counters->results[NAMED_LIMITED]));
    report_number(out, "shadowed", count_read(&counters->results[NAMED_SHADOWED]));
    report_number(out, "errors", count_read(&counters->results[NAMED_ERROR]));
    list_overrides(out, limit->overrides, now_ns);
}

/* Returns how many requests of that subject the limit refuses a second; below 0: none lately. */
static double refused_rate(const struct refused_lately *refused, const char *subject,
                           const struct limit *limit)
{
    for (size_t i = 0; i < refused->n; i++) {
        const struct top_entry *row = &refused->rows[i];
        if (row->refused_by == limit->id &&
            slice_eq(slice_of(row->subject, row->subject_len), slice_str(subject)))
            return (double)row->per_s;
    }
    return -1;
}

static void list_variant(struct build *out, const struct variant *one, const struct limit *limit,
                         double refused_per_s, uint64_t now_ns)
{
    build_map(out, 7 + REPORT_SET_FIELDS);
    report_limit(out, limit);
    report_number(out, "refused_per_s", refused_per_s > 0 ? (uint64_t)refused_per_s : 0);
    report_set_fields(out, limit, slice_str(one->subject), now_ns);
}

/*
 * Writes the limits that an operator has set for single subjects. These limits have no counters of
 * their own: the policy's counters include them. The table of the most refused subjects therefore
 * shows which of these limits refuse. Returns the number of limits written.
 */
static size_t list_variants(struct build *out, const struct report_list *list, uint64_t now_ns)
{
    size_t n = 0;
    const struct variants *variants = list->variants;
    struct refused_lately *refused = variants->n > 0 ? malloc(sizeof *refused) : NULL;
    if (refused == NULL) {
        out->is_broken |= variants->n > 0;
        return 0;
    }
    refused->n =
        top_heaviest(list->tops, list->n_workers, TOP_REFUSED, now_ns, refused->rows, TOP_SUBJECTS);
    for (size_t i = 0; i < variants->n; i++) {
        const struct policy *policy = variants->at[i].policy;
        for (size_t j = 0; j < policy->n_limits; j++) {
            double per_s = refused_rate(refused, variants->at[i].subject, &policy->limits[j]);
            if (!policy->limits[j].is_own ||
                !shows_own(&list->filter, &policy->limits[j], per_s >= 0))
                continue;
            n++;
            list_variant(out, &variants->at[i], &policy->limits[j], per_s, now_ns);
        }
    }
    free(refused);
    return n;
}

void report_list(struct build *out, const struct report_list *list, uint64_t now_ns)
{
    const struct policies *policies = list->policies;
    size_t n = 0;
    /* rows are counted while they are written, since the refusing limits may change */
    struct build rows;
    struct refused_lately *lately = look_for_refused(&list->filter, now_ns);
    build_init(&rows, out->is_resp3);
    for (size_t i = 0; i < policies_count(policies); i++) {
        const struct policy *policy = policies_at(policies, i);
        for (unsigned j = 0; j < policy->n_limits; j++) {
            if (!shows(&list->filter, &policy->limits[j]))
                continue;
            n++;
            build_map(&rows, 11 + (report_is_set(&policy->limits[j]) ? REPORT_SET_FIELDS : 0));
            report_limit(&rows, &policy->limits[j]);
            tallied(&rows, &policy->limits[j], list->limit_counters, list->n_workers);
            report_number(
                &rows, "subjects",
                atomic_load_explicit(&policy->policy_state->subjects, memory_order_relaxed));
            report_set_fields(&rows, &policy->limits[j], SLICE(""), now_ns);
        }
    }
    n += list_variants(&rows, list, now_ns);
    for (size_t i = 0; i < named_count(list->named); i++) {
        if (!shows_named(&list->filter, named_at(list->named, i), lately))
            continue;
        n++;
        list_named(&rows, named_at(list->named, i), list->when_down, now_ns);
    }
    free(lately);
    build_array(out, n);
    build_raw(out, slice_of(rows.at, rows.len));
    out->is_broken |= rows.is_broken;
    build_fini(&rows);
}

void report_blocks(struct build *out, const struct shared_set *blocks, size_t n, uint64_t now_ns)
{
    size_t told = shared_set_count(blocks) < n ? shared_set_count(blocks) : n;
    build_array(out, told);
    for (size_t i = 0; i < told; i++) {
        build_map(out, 3);
        report_field(out, "subject", blocks_at(blocks, i)->subject);
        report_block(out, blocks_at(blocks, i), now_ns);
    }
}

static uint64_t whole_seconds(uint64_t ns)
{
    return (ns + NS_PER_S / 2) / NS_PER_S;
}

/* NULL: no limit has this id. */
static const struct limit *limit_by_id(const struct policies *policies, uint32_t id)
{
    for (size_t p = 0; p < policies_count(policies); p++)
        for (unsigned i = 0; i < policies_at(policies, p)->n_limits; i++)
            if (policies_at(policies, p)->limits[i].id == id)
                return &policies_at(policies, p)->limits[i];
    return NULL;
}

/* Returns the limit that refuses a subject most; NULL: none, or a limit that no longer exists. */
static const char *refuser(const struct report_top *asked, uint32_t id)
{
    if (id != TOP_NO_LIMIT && id == asked->block_id)
        return "block";
    const struct limit *limit = limit_by_id(asked->policies, id);
    return limit != NULL ? limit->label : NULL;
}

static void top_row(struct build *out, const struct report_top *asked,
                    const struct top_entry *entry)
{
    build_map(out, asked->by == TOP_SHARE ? 7 : 8);
    report_field(out, "subject", slice_of(entry->subject, entry->subject_len));
    report_field(out, "policy", slice_of(entry->policy, entry->policy_len));
    report_number(out, top_field(asked->by), entry->per_s);
    report_number(out, "uncertainty", entry->over_per_s);
    report_number(out, "over_s", whole_seconds(entry->over_ns));
    report_text(out, "refused_by", refuser(asked, entry->refused_by));
    if (asked->by != TOP_SHARE)
        report_number(out, top_field(TOP_SHARE), entry->share_us_per_s);
    report_number(out, "turn_us_per_s", entry->share_us_per_s); /* the former name */
}

void report_top_limited(struct build *out, struct top *limited, size_t n, uint64_t now_ns)
{
    struct top_entry *entries = rows_new(out, n, sizeof *entries);
    if (entries == NULL)
        return;
    size_t found = top_heaviest(&limited, 1, TOP_REFUSED, now_ns, entries, n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++) {
        build_map(out, 5);
        report_field(out, "key", slice_of(entries[i].subject, entries[i].subject_len));
        report_field(out, "limit", slice_of(entries[i].policy, entries[i].policy_len));
        report_number(out, "limited_per_s", entries[i].per_s);
        report_number(out, "uncertainty", entries[i].over_per_s);
        report_number(out, "over_s", whole_seconds(entries[i].over_ns));
    }
    free(entries);
}

void report_top(struct build *out, const struct report_top *asked, uint64_t now_ns)
{
    struct top_entry *entries = rows_new(out, asked->n, sizeof *entries);
    if (entries == NULL)
        return;
    size_t found =
        top_heaviest(asked->tops, asked->n_workers, asked->by, now_ns, entries, asked->n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++)
        top_row(out, asked, &entries[i]);
    free(entries);
}

void report_log(struct build *out, struct journal *journal, size_t n)
{
    struct journal_event *events = rows_new(out, n, sizeof *events);
    if (events == NULL)
        return;
    size_t found = journal_last(journal, events, n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++) {
        build_map(out, 6);
        report_number(out, "id", events[i].id);
        report_number(out, "unix_ms", events[i].unix_ms);
        report_field(out, "kind", slice_str(events[i].kind));
        report_field(out, "text", slice_str(events[i].text));
        report_number(out, "count", events[i].count);
        report_number(out, "first_unix_ms", events[i].first_unix_ms);
    }
    free(events);
}

/* ---- LIMIT SLOWLOG ---- */

/* Writes the name of the command, and the number of its arguments. */
static void slow_command(struct build *out, const struct slow_entry *entry)
{
    uint32_t more = entry->argc > 0 ? entry->argc - 1 : 0;
    build_array(out, more > 0 ? 2 : 1);
    build_bulk_str(out, entry->command);
    if (more > 0)
        build_printf_bulk(out, "... (%" PRIu32 " %sargument%s)", more,
                          entry->argc == UINT16_MAX ? "or more " : "", more == 1 ? "" : "s");
}

static void report_operator_number(struct build *out, uint64_t value)
{
    build_int(out, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

static void slow_entry(struct build *out, const struct slow_entry *entry,
                       slow_waits_print *print_waits)
{
    char waits[SLOW_WAITS_ROOM];
    build_array(out, SLOW_ENTRY_FIELDS);
    report_operator_number(out, entry->id);
    report_operator_number(out, entry->unix_ms / 1000);
    report_operator_number(out, entry->total_us);
    slow_command(out, entry);
    build_bulk_str(out, entry->address);
    build_bulk_str(out, entry->client);
    report_operator_number(out, entry->waited_us);
    report_operator_number(out, entry->upstream_us);
    report_operator_number(out, entry->share_us);
    build_bulk(out, slice_of(waits, print_waits(entry->waits, waits)));
    build_bulk_str(out, entry->node);
}

static void slow_list(struct build *out, struct slowlog *slowlog, size_t most,
                      slow_waits_print *print_waits)
{
    size_t room = most < SLOWLOG_MOST ? most : SLOWLOG_MOST;
    struct slow_entry *entries = rows_new(out, room, sizeof *entries);
    if (entries == NULL)
        return;
    size_t n = slowlog_last(slowlog, entries, room);
    build_array(out, n);
    for (size_t i = 0; i < n; i++)
        slow_entry(out, &entries[i], print_waits);
    free(entries);
}

static void slow_get(struct build *out, struct slowlog *slowlog, const struct slice *words,
                     size_t n, slow_waits_print *print_waits)
{
    int64_t most = SLOW_USUAL;
    if (n == 2 && !num_parse(words[1], &most))
        build_error(out, SLICE("ERR value is not an integer or out of range"));
    else if (most < -1)
        build_error(out, SLICE("ERR count should be greater than or equal to -1"));
    else
        slow_list(out, slowlog, most == -1 ? SIZE_MAX : (size_t)most, print_waits);
}

static void slow_help(struct build *out)
{
    static const char *const lines[] = {
        "LIMIT SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GET [<count>]",
        "    Return top <count> entries from the slow log (default: 10, -1 means all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, command name and number of arguments,",
        "    client IP and port, client name, wait for a limit (not in the time),",
        "    time in Redis, wait for a fair share (both in the time),",
        "    reasons for waits in weir, the server that answered",
        "LEN",
        "    Return the length of the slow log.",
        "RESET",
        "    Reset the slow log.",
        "HELP",
        "    Print this help.",
    };
    build_array(out, sizeof lines / sizeof lines[0]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        build_status(out, slice_str(lines[i]));
}

void report_slowlog(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n,
                    slow_waits_print *print_waits)
{
    bool is_get = slice_eq_nocase(words[0], SLICE("get"));
    if (is_get && n <= 2) {
        slow_get(out, slowlog, words, n, print_waits);
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("len"))) {
        report_operator_number(out, slowlog_length(slowlog));
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("reset"))) {
        slowlog_reset(slowlog);
        build_status(out, SLICE("OK"));
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("help"))) {
        slow_help(out);
    } else {
        build_error(
            out,
            SLICE("ERR unknown subcommand or wrong number of arguments. Try LIMIT SLOWLOG HELP."));
    }
}
