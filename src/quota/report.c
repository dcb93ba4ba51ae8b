#include "quota/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/amount.h"
#include "limit/keys.h"
#include "limit/own.h"

#define LIMIT_FIELDS 9
#define HELP_LINE_MAX 512 /* LIMIT ALL with its options takes 300 */

static int64_t ms_up(uint64_t ns)
{
    uint64_t ms = ns_to_ms_up(ns);
    return ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

static void field(struct build *out, const char *name, struct slice value)
{
    build_bulk_str(out, name);
    build_bulk(out, value);
}

static void number(struct build *out, const char *name, uint64_t value)
{
    build_bulk_str(out, name);
    build_int(out, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

/* ---- one limit ---- */

static struct slice mode_of(const struct policies *policies)
{
    return policies_is_shadow(policies) ? SLICE("shadow") : SLICE("enforce");
}

static void over(struct build *out, const struct limit *limit)
{
    char text[LIMIT_ACTION_MAX];
    build_bulk_str(out, "over");
    build_bulk(out, slice_of(text, limit_print_action(limit, text)));
}

/* Has an operator set it for one subject, or for a time? Then a map of it has two fields more. */
static bool is_set(const struct limit *limit)
{
    return limit->is_own || limit->until_ns > 0;
}

#define SET_FIELDS 2

static void ends_in(struct build *out, uint64_t until_ns, uint64_t now_ns)
{
    build_bulk_str(out, "ends_in_ms");
    build_int(out, until_ns == 0 ? -1 : until_ns > now_ns ? ms_up(until_ns - now_ns) : 0);
}

static void set_fields(struct build *out, const struct limit *limit, struct slice subject, uint64_t now_ns)
{
    if (!is_set(limit))
        return;
    build_bulk_str(out, "for");
    if (limit->is_own)
        build_bulk(out, subject);
    else
        build_nil(out);
    ends_in(out, limit->until_ns, now_ns);
}

/* limit, what, rate, burst, per, over: what is configured. */
static void configured(struct build *out, const struct limit *limit)
{
    char rate[LIMIT_RATE_MAX];
    limit_print_rate(limit, rate);
    field(out, "limit", slice_str(limit->label));
    field(out, "what", limit_line(limit));
    field(out, "rate", slice_str(rate));
    number(out, "burst", limit->rate.burst);
    field(out, "per", scope_name((enum scope)limit->scope));
    over(out, limit);
}

static void standing(struct build *out, const struct report_subject *subject, unsigned index, uint64_t now_ns)
{
    struct standing now = gate_standing(&subject->account, index, now_ns);
    number(out, "remaining", now.remaining);
    build_bulk_str(out, "retry_after_ms");
    bool is_never = now.retry_after_ns < 0 || now.retry_after_ns == INT64_MAX;
    build_int(out, is_never ? -1 : ms_up((uint64_t)now.retry_after_ns));
    build_bulk_str(out, "reset_after_ms");
    build_int(out, ms_up(now.reset_after_ns));
}

static void who(struct build *out, const struct report_subject *subject)
{
    field(out, "subject", subject->name);
    build_bulk_str(out, "policy");
    if (subject->account.policy != NULL && subject->account.policy->name[0] != '\0')
        build_bulk_str(out, subject->account.policy->name);
    else
        build_nil(out);
}

static void block_fields(struct build *out, const struct block *block, uint64_t now_ns)
{
    field(out, "reason", block->reason);
    ends_in(out, block->until_ns, now_ns);
}

/* One more field of a map, for who is blocked. */
static void blocked(struct build *out, const struct report_subject *subject, uint64_t now_ns)
{
    if (subject->block == NULL)
        return;
    build_bulk_str(out, "blocked");
    build_map(out, 2);
    block_fields(out, subject->block, now_ns);
}

#define TURN_FIELDS 3

/* How its requests wait for their turn: now, and since it is remembered. */
static void turns(struct build *out, const struct report_subject *of)
{
    struct subject *subject = of->account.holders[PER_SUBJECT];
    bool is_there = subject != NULL;
    number(out, "turn_waiting", is_there && atomic_load_explicit(&subject->queues, memory_order_relaxed) > 0);
    number(out, "turn_waits", is_there ? atomic_load_explicit(&subject->turns, memory_order_relaxed) : 0);
    number(out, "turn_waited_ms",
           is_there ? atomic_load_explicit(&subject->turn_us, memory_order_relaxed) / (NS_PER_MS / NS_PER_US) : 0);
}

static unsigned count_limits(const struct report_subject *subject)
{
    return subject->account.policy != NULL ? subject->account.policy->n_limits : 0;
}

void report_status(struct build *out, const struct policies *policies, const struct report_subject *subject,
                   uint64_t now_ns)
{
    unsigned n = count_limits(subject);
    build_map(out, 4 + TURN_FIELDS + (subject->block != NULL));
    who(out, subject);
    field(out, "mode", mode_of(policies));
    blocked(out, subject, now_ns);
    build_bulk_str(out, "limits");
    build_array(out, n);
    for (unsigned i = 0; i < n; i++) {
        const struct limit *limit = &subject->account.policy->limits[i];
        build_map(out, LIMIT_FIELDS + (is_set(limit) ? SET_FIELDS : 0));
        configured(out, limit);
        standing(out, subject, i, now_ns);
        set_fields(out, limit, subject->name, now_ns);
    }
    turns(out, subject);
}

/* ---- explaining ---- */

static bool is_operators_class(const struct class *class)
{
    struct slice name = class_name(class);
    return !class_is_builtin(class) && name.at[0] != '@' && !(name.len > 4 && memcmp(name.at, "cmd.", 4) == 0);
}

static bool is_before(struct slice a, struct slice b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order < 0 || (order == 0 && a.len < b.len);
}

/* The next category of the command after `last`, alphabetically: Redis lists them in no order. */
static bool next_category(const struct command_table *table, const struct command *command, struct slice last,
                          struct slice *next)
{
    bool is_found = false;
    for (size_t bit = 0; bit < command_table_categories(table); bit++) {
        struct slice category = command_table_category(table, bit);
        if (!(command->categories >> bit & 1) || category.len > COMMAND_NAME_MAX || !is_before(last, category))
            continue;
        if (!is_found || is_before(category, *next))
            *next = category;
        is_found = true;
    }
    return is_found;
}

/* Counts them; and, unless `out` is NULL, appends them: all, read, write, control, @categories, the operator's own. */
static unsigned classes(struct build *out, const struct policies *policies, const struct command_table *table,
                        const struct command *command)
{
    const struct classes *all = policies_classes(policies);
    unsigned n = 0;
    for (size_t i = 0; i < classes_count(all); i++) {
        const struct class *class = classes_at(all, i);
        if ((!class_is_builtin(class) && !is_operators_class(class)) || !class_has(class, table, command))
            continue;
        if (out != NULL)
            build_bulk(out, class_name(class));
        n++;
    }
    struct slice category = SLICE("");
    while (next_category(table, command, category, &category)) {
        char text[COMMAND_NAME_MAX + 2] = "@";
        memcpy(text + 1, category.at, category.len);
        if (out != NULL)
            build_bulk(out, slice_of(text, category.len + 1));
        n++;
    }
    return n;
}

static const char *verdict_word(enum gate gate)
{
    switch (gate) {
    case GATE_PASS:
        return "pass";
    case GATE_WAIT:
        return "delay";
    case GATE_REFUSE:
        return "refuse";
    case GATE_CLOSE:
        return "close";
    case GATE_DENY:
        return "deny";
    }
    return "";
}

static enum gate verdict(struct build *out, const struct report_subject *subject, const struct ask *ask)
{
    struct verdict found = {0};
    struct ask dry = *ask;
    dry.is_dry = true;
    const struct account *account = &subject->account;
    enum gate gate = GATE_PASS;
    if (account->policy != NULL && (ask->command->flags & CMD_CONTROL) != 0)
        gate = gate_ask_debtor(account, ask->now_ns, NULL, &found);
    if (account->policy != NULL && gate == GATE_PASS)
        gate = gate_ask(account, &dry, NULL, &found);
    field(out, "verdict", slice_str(verdict_word(gate)));
    build_bulk_str(out, "wait_ms");
    build_int(out, gate == GATE_PASS ? 0 : found.wait_ns == GATE_NEVER ? -1 : ms_up((uint64_t)found.wait_ns));
    build_bulk_str(out, "limit");
    if (gate == GATE_PASS)
        build_nil(out);
    else
        build_bulk_str(out, found.limit->label);
    return gate;
}

/* By which limit would one more connection of its be turned away now? */
static const struct limit *door_keeper(const struct report_subject *subject, uint64_t now_ns)
{
    const struct policy *policy = subject->account.policy;
    for (unsigned i = 0; policy != NULL && i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        bool is_at_the_door = limit->unit == UNIT_CONNECTIONS || limit->unit == UNIT_CONNECTS;
        if (is_at_the_door && (policy->shadows >> i & 1) == 0 &&
            gate_standing(&subject->account, i, now_ns).remaining == 0)
            return limit;
    }
    return NULL;
}

static void door(struct build *out, const struct report_subject *subject, uint64_t now_ns)
{
    const struct limit *limit = door_keeper(subject, now_ns);
    build_bulk_str(out, "connect_refused_by");
    if (limit != NULL)
        build_bulk_str(out, limit->label);
    else
        build_nil(out);
}

struct slice report_lane(const struct command *command, bool is_private)
{
    if (command->flow == FLOW_OWN || command->flow == FLOW_QUIT)
        return SLICE("none");
    return is_private || !command->is_shareable ? SLICE("private") : SLICE("shared");
}

enum gate report_explain(struct build *out, const struct policies *policies, const struct command_table *table,
                         const struct report_subject *subject, const struct explained_call *call)
{
    const struct command *command = call->command;
    struct amounts amounts;
    amounts_take(&amounts, policies, command, call->request, call->argc);
    const struct ask made = {
        .command = command,
        .amount = amounts.of,
        .now_ns = call->now_ns,
        .headed_ns = call->now_ns,
        .may_wait = true,
        .blocks = keys_may_wait(command, call->request, call->argc),
    };
    const struct ask *ask = &made;
    unsigned n = count_limits(subject);
    build_map(out, 12 + TURN_FIELDS + (subject->block != NULL));
    who(out, subject);
    field(out, "mode", mode_of(policies));
    blocked(out, subject, ask->now_ns);
    field(out, "command", command->id ? slice_of(command->name, command->name_len) : SLICE("unknown"));
    build_bulk_str(out, "classes");
    build_array(out, classes(NULL, policies, table, command));
    classes(out, policies, table, command);
    number(out, "cost", ask->amount[UNIT_COST]);
    field(out, "lane", call->lane);
    enum gate gate = verdict(out, subject, ask);
    build_bulk_str(out, "limits");
    build_array(out, n);
    for (unsigned i = 0; i < n; i++) {
        const struct limit *limit = &subject->account.policy->limits[i];
        build_map(out, LIMIT_FIELDS + 1 + (is_set(limit) ? SET_FIELDS : 0));
        configured(out, limit);
        standing(out, subject, i, ask->now_ns);
        number(out, "binds", gate_binds(subject->account.policy, i, command));
        set_fields(out, limit, subject->name, ask->now_ns);
    }
    turns(out, subject);
    door(out, subject, ask->now_ns);
    return gate;
}

/* ---- for the operator ---- */

static uint64_t sum(struct tally *const *tallies, unsigned n_workers, uint16_t id, size_t offset)
{
    uint64_t total = 0;
    for (unsigned w = 0; w < n_workers; w++) {
        const char *tally = (const char *)&tallies[w][id];
        total += atomic_load_explicit((const _Atomic uint64_t *)(const void *)(tally + offset), memory_order_relaxed);
    }
    return total;
}

static void tallied(struct build *out, const struct limit *limit, struct tally *const *tallies, unsigned n_workers)
{
    number(out, "admitted", sum(tallies, n_workers, limit->id, offsetof(struct tally, admitted)));
    number(out, "delayed", sum(tallies, n_workers, limit->id, offsetof(struct tally, delayed)));
    number(out, "refused", sum(tallies, n_workers, limit->id, offsetof(struct tally, refused)));
    number(out, "shadowed", sum(tallies, n_workers, limit->id, offsetof(struct tally, shadowed)));
}

/* Rates of single keys, and how long they last; -1: until they are removed. */
static void list_overrides(struct build *out, const struct overrides *overrides, uint64_t now_ns)
{
    build_bulk_str(out, "overrides");
    build_array(out, overrides_living(overrides, now_ns));
    for (size_t i = 0; i < overrides_count(overrides); i++) {
        const struct override *one = overrides_at(overrides, i);
        if (override_is_over(one, now_ns))
            continue;
        build_map(out, 3);
        field(out, "key", one->key);
        field(out, "rate", one->rates);
        build_bulk_str(out, "ends_in_ms");
        build_int(out, one->until_ns > 0 ? ms_up(one->until_ns - now_ns) : -1);
    }
}

static void list_named(struct build *out, const struct named_limit *limit, enum quota_when_down when_down,
                       uint64_t now_ns)
{
    const struct named_tally *tally = limit->tally;
    build_map(out, 13);
    field(out, "limit", slice_str(limit->name));
    field(out, "what", slice_str(quota_algorithm(limit->rule.kind)->name));
    field(out, "rate", slice_str(limit->rates));
    field(out, "tz", slice_str(zone_name(limit->rule.zone)));
    field(out, "over", limit->is_shadow ? SLICE("shadow") : SLICE("refuse"));
    field(out, "when_down", slice_str(named_when_down(limit, when_down)));
    field(out, "penalty", limit->penalty_text != NULL ? slice_str(limit->penalty_text) : SLICE(""));
    number(out, "asked", named_tally_asked(tally));
    number(out, "passed", count_read(&tally->results[TALLY_PASSED]));
    number(out, "limited", count_read(&tally->results[TALLY_LIMITED]));
    number(out, "shadowed", count_read(&tally->results[TALLY_SHADOWED]));
    number(out, "errors", count_read(&tally->results[TALLY_ERROR]));
    list_overrides(out, limit->overrides, now_ns);
}

/*
 * Those that an operator has set for single subjects; what they admit and refuse is counted with their policies' limits.
 * Returns how many.
 */
static size_t list_variants(struct build *out, const struct report_list *list, uint64_t now_ns)
{
    size_t n = 0;
    const struct variants *variants = list->variants;
    for (size_t i = 0; i < variants->n; i++) {
        const struct policy *policy = variants->at[i].policy;
        for (size_t j = 0; j < policy->n_limits; j++) {
            if (!policy->limits[j].is_own || !report_filter_shows(&list->filter, &policy->limits[j]))
                continue;
            n++;
            build_map(out, 6 + SET_FIELDS);
            configured(out, &policy->limits[j]);
            set_fields(out, &policy->limits[j], slice_str(variants->at[i].subject), now_ns);
        }
    }
    return n;
}

void report_list(struct build *out, const struct report_list *list, uint64_t now_ns)
{
    const struct policies *policies = list->policies;
    size_t n = 0;
    struct build rows; /* which limits refuse may change meanwhile */
    struct refused_lately *lately = report_filter_look(&list->filter, now_ns);
    build_init(&rows, out->is_resp3);
    for (size_t i = 0; i < policies_count(policies); i++) {
        const struct policy *policy = policies_at(policies, i);
        for (unsigned j = 0; j < policy->n_limits; j++) {
            if (!report_filter_shows(&list->filter, &policy->limits[j]))
                continue;
            n++;
            build_map(&rows, 11 + (is_set(&policy->limits[j]) ? SET_FIELDS : 0));
            configured(&rows, &policy->limits[j]);
            tallied(&rows, &policy->limits[j], list->tallies, list->n_workers);
            number(&rows, "subjects", atomic_load_explicit(&policy->record->subjects, memory_order_relaxed));
            set_fields(&rows, &policy->limits[j], SLICE(""), now_ns);
        }
    }
    n += list_variants(&rows, list, now_ns);
    for (size_t i = 0; i < named_count(list->named); i++) {
        if (!report_filter_shows_named(&list->filter, named_at(list->named, i), lately))
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

void report_blocks(struct build *out, const struct blocks *blocks, size_t n, uint64_t now_ns)
{
    size_t told = blocks_count(blocks) < n ? blocks_count(blocks) : n;
    build_array(out, told);
    for (size_t i = 0; i < told; i++) {
        build_map(out, 3);
        field(out, "subject", blocks_at(blocks, i)->subject);
        block_fields(out, blocks_at(blocks, i), now_ns);
    }
}

static uint64_t whole_seconds(uint64_t ns)
{
    return (ns + NS_PER_S / 2) / NS_PER_S;
}

/* NULL: there is none with this id. */
static const struct limit *limit_by_id(const struct policies *policies, uint32_t id)
{
    for (size_t p = 0; p < policies_count(policies); p++)
        for (unsigned i = 0; i < policies_at(policies, p)->n_limits; i++)
            if (policies_at(policies, p)->limits[i].id == id)
                return &policies_at(policies, p)->limits[i];
    return NULL;
}

static void top_row(struct build *out, const struct policies *policies, const struct top_entry *entry, enum top_by by)
{
    const struct limit *limit = limit_by_id(policies, entry->refused_by);
    build_map(out, by == TOP_TURNS ? 6 : 7);
    field(out, "subject", slice_of(entry->subject, entry->subject_len));
    field(out, "policy", slice_of(entry->policy, entry->policy_len));
    number(out, top_field(by), entry->per_s);
    number(out, "uncertainty", entry->over_per_s);
    number(out, "over_s", whole_seconds(entry->over_ns));
    build_bulk_str(out, "refused_by");
    if (limit != NULL)
        build_bulk_str(out, limit->label);
    else
        build_nil(out);
    if (by != TOP_TURNS)
        number(out, top_field(TOP_TURNS), entry->turn_us_per_s);
}

void report_top_limited(struct build *out, struct top *limited, size_t n, uint64_t now_ns)
{
    struct top_entry *entries = calloc(n, sizeof *entries);
    if (entries == NULL) {
        out->is_broken = true;
        return;
    }
    size_t found = top_heaviest(&limited, 1, TOP_REFUSED, now_ns, entries, n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++) {
        build_map(out, 5);
        field(out, "key", slice_of(entries[i].subject, entries[i].subject_len));
        field(out, "limit", slice_of(entries[i].policy, entries[i].policy_len));
        number(out, "limited_per_s", entries[i].per_s);
        number(out, "uncertainty", entries[i].over_per_s);
        number(out, "over_s", whole_seconds(entries[i].over_ns));
    }
    free(entries);
}

void report_top(struct build *out, const struct policies *policies, struct top *const *tops, unsigned n_workers,
                enum top_by by, size_t n, uint64_t now_ns)
{
    struct top_entry *entries = calloc(n, sizeof *entries);
    if (entries == NULL) {
        out->is_broken = true;
        return;
    }
    size_t found = top_heaviest(tops, n_workers, by, now_ns, entries, n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++)
        top_row(out, policies, &entries[i], by);
    free(entries);
}

void report_log(struct build *out, struct journal *journal, size_t n)
{
    struct journal_event *events = calloc(n > 0 ? n : 1, sizeof *events);
    if (events == NULL) {
        out->is_broken = true;
        return;
    }
    size_t found = journal_last(journal, events, n);
    build_array(out, found);
    for (size_t i = 0; i < found; i++) {
        build_map(out, 6);
        number(out, "id", events[i].id);
        number(out, "unix_ms", events[i].unix_ms);
        field(out, "kind", slice_str(events[i].kind));
        field(out, "text", slice_str(events[i].text));
        number(out, "count", events[i].count);
        number(out, "first_unix_ms", events[i].first_unix_ms);
    }
    free(events);
}

/* "STATUS [FOR subject]": the notation of own.def without the types. */
static void usage(const struct own *own, char *text, size_t size)
{
    size_t len = 0;
    for (const char *at = strchr(own->name, '|') + 1; *at && len + 1 < size; at++)
        text[len++] = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    if (own->arguments[0] && len + 1 < size)
        text[len++] = ' ';
    bool is_type = false;
    for (const char *at = own->arguments; *at && len + 1 < size; at++) {
        is_type = *at == ':' || (is_type && *at >= 'a' && *at <= 'z');
        if (!is_type)
            text[len++] = *at;
    }
    text[len] = '\0';
}

void report_help(struct build *out)
{
    char text[HELP_LINE_MAX];
    unsigned n = 0;
    for (size_t i = 0; i < own_count(); i++)
        n += strncmp(own_row(i)->name, "limit|", 6) == 0;
    build_array(out, 1 + 2 * n);
    build_status(out, SLICE("LIMIT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for (size_t i = 0; i < own_count(); i++) {
        const struct own *own = own_row(i);
        if (strncmp(own->name, "limit|", 6) != 0)
            continue;
        usage(own, text, sizeof text);
        build_status(out, slice_str(text));
        snprintf(text, sizeof text, "    %s", own->summary);
        build_status(out, slice_str(text));
    }
}
