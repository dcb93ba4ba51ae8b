#include "quota/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/keys.h"
#include "limit/command/own.h"
#include "limit/policy/policy.h"

#define LIMIT_FIELDS 9
#define HELP_LINE_MAX 512 /* bytes; LIMIT ALL with its options takes 300 */

/* ---- fields ---- */

/* Returns ms, rounded up, at most the largest integer of RESP. */
static int64_t report_ms_up(uint64_t ns)
{
    uint64_t ms = ns_to_ms_up(ns);
    return ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

void report_field(struct build *out, const char *name, struct slice value)
{
    build_bulk_str(out, name);
    build_bulk(out, value);
}

void report_text(struct build *out, const char *name, const char *text)
{
    build_bulk_str(out, name);
    if (text != NULL)
        build_bulk_str(out, text);
    else
        build_nil(out);
}

void report_number(struct build *out, const char *name, uint64_t value)
{
    build_bulk_str(out, name);
    build_int(out, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

bool report_is_set(const struct limit *limit)
{
    return limit->is_own || limit->until_ns > 0;
}

void report_end(struct build *out, uint64_t until_ns, uint64_t now_ns)
{
    build_bulk_str(out, "ends_in_ms");
    build_int(out, until_ns == 0 ? -1 : until_ns > now_ns ? report_ms_up(until_ns - now_ns) : 0);
}

void report_set_fields(struct build *out, const struct limit *limit, struct slice subject,
                       uint64_t now_ns)
{
    if (!report_is_set(limit))
        return;
    build_bulk_str(out, "for");
    if (limit->is_own)
        build_bulk(out, subject);
    else
        build_nil(out);
    report_end(out, limit->until_ns, now_ns);
}

void report_limit(struct build *out, const struct limit *limit)
{
    char rate[LIMIT_RATE_MAX], over[LIMIT_ACTION_MAX];
    limit_print_rate(limit, rate);
    report_field(out, "limit", slice_str(limit->label));
    report_field(out, "what", limit_line(limit));
    report_field(out, "rate", slice_str(rate));
    report_number(out, "burst", limit->rate.burst);
    report_field(out, "per", scope_name((enum scope)limit->scope));
    report_field(out, "over", slice_of(over, limit_print_action(limit, over)));
}

void report_block(struct build *out, const struct block *block, uint64_t now_ns)
{
    report_field(out, "reason", block->reason);
    report_end(out, block->until_ns, now_ns);
}

/* ---- one limit ---- */

static struct slice mode_of(const struct policies *policies)
{
    return policies_is_shadow(policies) ? SLICE("shadow") : SLICE("enforce");
}

static void report_standing(struct build *out, const struct report_subject *subject, unsigned index,
                            uint64_t now_ns)
{
    struct standing now = gate_standing(&subject->target, index, now_ns);
    report_number(out, "remaining", now.remaining);
    build_bulk_str(out, "retry_after_ms");
    bool is_never = now.retry_after_ns < 0 || now.retry_after_ns == INT64_MAX;
    build_int(out, is_never ? -1 : report_ms_up((uint64_t)now.retry_after_ns));
    build_bulk_str(out, "reset_after_ms");
    build_int(out, report_ms_up(now.reset_after_ns));
}

static void report_put_subject(struct build *out, const struct report_subject *subject)
{
    const struct policy *policy = subject->target.policy;
    report_field(out, "subject", subject->name);
    report_text(out, "policy", policy != NULL && policy->name[0] != '\0' ? policy->name : NULL);
}

/* Writes one more field of a map, for a blocked subject. */
static void blocked(struct build *out, const struct report_subject *subject, uint64_t now_ns)
{
    if (subject->block == NULL)
        return;
    build_bulk_str(out, "blocked");
    build_map(out, 2);
    report_block(out, subject->block, now_ns);
}

#define SHARE_FIELDS 6

/*
 * Writes how the subject's requests wait for their share: now, and in total. Each field has an old
 * name beside it.
 */
static void report_share(struct build *out, const struct report_subject *of)
{
    struct subject *subject = of->target.holders[PER_SUBJECT];
    uint64_t waiting = 0, waits = 0, waited_us = 0;
    if (subject != NULL) {
        waiting = atomic_load_explicit(&subject->queues, memory_order_relaxed) > 0;
        waits = atomic_load_explicit(&subject->share_waits, memory_order_relaxed);
        waited_us = atomic_load_explicit(&subject->share_us, memory_order_relaxed);
    }
    report_number(out, "share_waiting", waiting);
    report_number(out, "share_waits", waits);
    report_number(out, "share_waited_ms", waited_us / (NS_PER_MS / NS_PER_US));
    report_number(out, "turn_waiting", waiting);
    report_number(out, "turn_waits", waits);
    report_number(out, "turn_waited_ms", waited_us / (NS_PER_MS / NS_PER_US));
}

static unsigned count_limits(const struct report_subject *subject)
{
    return subject->target.policy != NULL ? subject->target.policy->n_limits : 0;
}

void report_status(struct build *out, const struct policies *policies,
                   const struct report_subject *subject, uint64_t now_ns)
{
    unsigned n = count_limits(subject);
    build_map(out, 4 + SHARE_FIELDS + (subject->block != NULL));
    report_put_subject(out, subject);
    report_field(out, "mode", mode_of(policies));
    blocked(out, subject, now_ns);
    build_bulk_str(out, "limits");
    build_array(out, n);
    for (unsigned i = 0; i < n; i++) {
        const struct limit *limit = &subject->target.policy->limits[i];
        build_map(out, LIMIT_FIELDS + (report_is_set(limit) ? REPORT_SET_FIELDS : 0));
        report_limit(out, limit);
        report_standing(out, subject, i, now_ns);
        report_set_fields(out, limit, subject->name, now_ns);
    }
    report_share(out, subject);
}

/* ---- explaining ---- */

static bool is_operators_class(const struct class *class)
{
    struct slice name = class_name(class);
    return !class_is_builtin(class) && name.at[0] != '@' &&
           !(name.len > 4 && memcmp(name.at, "cmd.", 4) == 0);
}

static bool report_is_before(struct slice a, struct slice b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order < 0 || (order == 0 && a.len < b.len);
}

/*
 * Returns the next category of the command after `last`, in alphabetical order: Redis lists
 * categories in no particular order.
 */
static bool next_category(const struct command_table *table, const struct command *command,
                          struct slice last, struct slice *next)
{
    bool is_found = false;
    for (size_t bit = 0; bit < command_table_categories(table); bit++) {
        struct slice category = command_table_category(table, bit);
        if (!(command->categories >> bit & 1) || category.len > COMMAND_NAME_MAX ||
            !report_is_before(last, category))
            continue;
        if (!is_found || report_is_before(category, *next))
            *next = category;
        is_found = true;
    }
    return is_found;
}

/*
 * Counts the classes of the command, and appends them unless `out` is NULL: all, read, write,
 * control, @categories, and the operator's own.
 */
static unsigned classes(struct build *out, const struct policies *policies,
                        const struct command_table *table, const struct command *command)
{
    const struct classes *all = policies_classes(policies);
    unsigned n = 0;
    for (size_t i = 0; i < classes_count(all); i++) {
        const struct class *class = classes_at(all, i);
        if ((!class_is_builtin(class) && !is_operators_class(class)) ||
            !class_has(class, table, command))
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

static enum gate verdict(struct build *out, const struct report_subject *subject,
                         const struct gate_request *ask, bool is_shadow)
{
    static const char *const words[] = {[GATE_PASS] = "pass",
                                        [GATE_WAIT] = "delay",
                                        [GATE_REFUSE] = "refuse",
                                        [GATE_CLOSE] = "close",
                                        [GATE_DENY] = "deny"};
    struct verdict found = {0};
    struct gate_request dry = *ask;
    dry.is_dry = true;
    const struct charge_target *target = &subject->target;
    enum gate gate = GATE_PASS;
    if (target->policy != NULL && (ask->command->flags & CMD_CONTROL) != 0)
        gate = gate_ask_debtor(target, ask->now_ns, NULL, &found);
    if (target->policy != NULL && gate == GATE_PASS)
        gate = gate_ask(target, &dry, NULL, &found);
    /*
     * In shadow mode the command passes, and the reply shows what enforcement would do. A limit
     * with over = shadow refuses nothing.
     */
    bool is_foreseen = is_shadow && gate == GATE_PASS;
    enum gate told = is_foreseen ? found.would : gate;
    int64_t wait_ns = is_foreseen ? found.would_wait_ns : found.wait_ns;
    report_field(out, "verdict", slice_str(words[told]));
    build_bulk_str(out, "wait_ms");
    build_int(out, told == GATE_PASS       ? 0
                   : wait_ns == GATE_NEVER ? -1
                                           : report_ms_up((uint64_t)wait_ns));
    report_text(out, "limit", told != GATE_PASS ? found.limit->label : NULL);
    return gate;
}

/* Returns the limit that would refuse one more connection of the subject now; NULL: none. */
static const struct limit *auth_lane_ops(const struct report_subject *subject, uint64_t now_ns,
                                         bool is_shadow)
{
    const struct policy *policy = subject->target.policy;
    for (unsigned i = 0; policy != NULL && i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        bool limits_connections = limit->unit == UNIT_CONNECTIONS || limit->unit == UNIT_CONNECTS;
        if (limits_connections && limit->action != OVER_SHADOW &&
            (is_shadow || (policy->shadows >> i & 1) == 0) &&
            gate_standing(&subject->target, i, now_ns).remaining == 0)
            return limit;
    }
    return NULL;
}

static void auth_lane(struct build *out, const struct report_subject *subject,
                      const struct explained_call *call, bool is_shadow)
{
    const struct limit *limit = auth_lane_ops(subject, call->now_ns, is_shadow);
    const char *refuser = call->refuser == NULL && limit != NULL ? limit->label : call->refuser;
    report_text(out, "connect_refused_by", refuser);
}

struct slice report_lane(const struct command *command, bool is_private)
{
    if (command->flow == FLOW_OWN || command->flow == FLOW_QUIT)
        return SLICE("none");
    return is_private || !command->is_shareable ? SLICE("private") : SLICE("shared");
}

static void report_tell_slot(struct build *out, const struct explained_call *call)
{
    build_bulk_str(out, "slot");
    if (call->has_slot)
        build_int(out, call->slot);
    else
        build_nil(out);
}

/* Writes the cost in us, as a double: most commands take few us. */
static void tell_redis_cost(struct build *out, const struct command *command)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%.1f", command_cost_ns(command) / 1000.0);
    report_field(out, "redis_cost_us", slice_of(text, (size_t)n));
    report_field(out, "redis_cost_by",
                 command_cost_calls(command) > 0 ? SLICE("measured") : SLICE("flags"));
}

enum gate report_explain(struct build *out, const struct policies *policies,
                         const struct command_table *table, const struct report_subject *subject,
                         const struct explained_call *call)
{
    const struct command *command = call->command;
    struct amounts amounts;
    amounts_take(&amounts, policies, command, call->request, call->argc);
    const struct gate_request made = {
        .command = command,
        .amount = amounts.of,
        .now_ns = call->now_ns,
        .headed_ns = call->now_ns,
        .may_wait = true,
        .blocks = keys_may_wait(command, call->request, call->argc),
    };
    const struct gate_request *ask = &made;
    unsigned n = count_limits(subject);
    bool tells_server = call->server.len > 0;
    size_t n_fields = 14 + SHARE_FIELDS + (subject->block != NULL);
    build_map(out, n_fields + (tells_server ? 2 : 0) + (call->is_of_cluster ? 1 : 0));
    report_put_subject(out, subject);
    report_field(out, "mode", mode_of(policies));
    blocked(out, subject, ask->now_ns);
    report_field(out, "command",
                 command->id ? slice_of(command->name, command->name_len) : SLICE("unknown"));
    build_bulk_str(out, "classes");
    build_array(out, classes(NULL, policies, table, command));
    classes(out, policies, table, command);
    report_number(out, "cost", ask->amount[UNIT_COST]);
    tell_redis_cost(out, command);
    report_field(out, "lane", call->lane);
    if (call->is_of_cluster)
        report_tell_slot(out, call);
    if (tells_server) {
        report_field(out, "server", call->server);
        report_field(out, "server_why", call->server_why);
    }
    bool is_shadow = policies_is_shadow(policies);
    enum gate gate = verdict(out, subject, ask, is_shadow);
    build_bulk_str(out, "limits");
    build_array(out, n);
    for (unsigned i = 0; i < n; i++) {
        const struct limit *limit = &subject->target.policy->limits[i];
        build_map(out, LIMIT_FIELDS + 1 + (report_is_set(limit) ? REPORT_SET_FIELDS : 0));
        report_limit(out, limit);
        report_standing(out, subject, i, ask->now_ns);
        report_number(out, "binds", gate_binds(subject->target.policy, i, command));
        report_set_fields(out, limit, subject->name, ask->now_ns);
    }
    report_share(out, subject);
    auth_lane(out, subject, call, is_shadow);
    return gate;
}

/* Writes "STATUS [FOR subject]": own.def's notation without the types. */
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
