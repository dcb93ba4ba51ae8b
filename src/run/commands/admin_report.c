#include "run/commands/admin_report.h"

#include "admin/info.h"
#include "limit/policy/exceptions.h"
#include "quota/report.h"
#include "resp/build.h"
#include "run/commands/suggest.h"

/* ---- limits and subjects ---- */

static void report_limits(struct admin_command *admin_command,
                          const struct stats_collector *collector, uint64_t now_ns)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    const struct front_settings *settings = collector->settings;
    const struct report_list list = {
        .policies = rules->policies,
        .variants = exceptions_variants(rules->exceptions),
        .limit_counters = settings->limit_counters,
        .tops = settings->tops,
        .n_workers = settings->n_workers,
        .named = rules->named,
        .when_down = rules->when_down,
        .filter = {.glob = slice_of(admin_command->key, admin_command->key_len),
                   .stopping = admin_command->wanted.is_refusing ? settings->stopping : NULL,
                   .limited = settings->quota.limited},
    };
    report_list(&admin_command->rows, &list, now_ns);
}

static void report_heaviest(struct admin_command *admin_command,
                            const struct stats_collector *collector, uint64_t now_ns)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    const struct front_settings *settings = collector->settings;
    const struct report_top asked = {
        .policies = rules->policies,
        .block_id = rules->block_id,
        .tops = settings->tops,
        .n_workers = settings->n_workers,
        .by = admin_command->wanted.by,
        .n = admin_command->wanted.n,
    };
    if (asked.by == TOP_BY_COUNT)
        report_top_limited(&admin_command->rows, settings->quota.limited, asked.n, now_ns);
    else
        report_top(&admin_command->rows, &asked, now_ns);
}

static void report_blocked(struct admin_command *admin_command,
                           const struct stats_collector *collector, uint64_t now_ns)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    report_blocks(&admin_command->rows, exceptions_blocks(rules->exceptions),
                  admin_command->wanted.n, now_ns);
}

static void report_suggestions(struct admin_command *admin_command,
                               const struct stats_collector *collector, uint64_t now_ns)
{
    suggest_carry_out(admin_command, config_manager_rules(collector->manager)->policies,
                      collector->settings, now_ns);
}

/* ---- INFO, and a row for each server of the upstream ---- */

static void report_info(struct admin_command *admin_command,
                        const struct stats_collector *collector, uint64_t now_ns)
{
    struct snapshot *snapshot = collector_look(collector);
    (void)now_ns;
    admin_command->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    struct text text = {0};
    info_write(&text, snapshot,
               admin_command->what != NULL ? slice_str(admin_command->what) : SLICE(""));
    admin_command->is_starved = text.is_broken;
    admin_command->text = text.at;
    admin_command->text_len = text.len;
    snapshot_put(snapshot);
}

static void put_text(struct build *out, const char *name, const char *text)
{
    build_bulk_str(out, name);
    build_bulk_str(out, text);
}

static void admin_report_put_number(struct build *out, const char *name, int64_t n)
{
    build_bulk_str(out, name);
    build_int(out, n);
}

/*
 * Returns why weir cannot use the server, or the first error of the addresses that weir dialled;
 * "": no error.
 */
static const char *admin_report_why_of(const struct snapshot_node *node)
{
    const char *why = node->why;
    for (unsigned i = 0; i < node->n_tries && why[0] == '\0'; i++)
        why = node->tries[i].why;
    return why;
}

static void put_row(struct build *out, const struct snapshot_node *node, const struct snapshot *s)
{
    const struct lane_counts *lanes = &node->lanes;
    uint64_t n_lanes = 0, n_lost = 0;
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
        n_lanes += count_read(&lanes->lists[in]);
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        n_lost += count_read(&lanes->lost[loss]);
    bool has_changed = node->changed_unix_ms != 0 && node->changed_unix_ms <= s->unix_ms;
    build_map(out, 17);
    put_text(out, "address", node->address);
    put_text(out, "in_use", node->in_use);
    put_text(out, "role", node->role);
    put_text(out, "state", node_state_name(node->health.state));
    put_text(out, "used_for", node_use_name(node->use));
    admin_report_put_number(out, "epoch", (int64_t)node->epoch);
    admin_report_put_number(out, "lag_ms",
                            node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->lag_ms : -1);
    admin_report_put_number(out, "behind_bytes",
                            node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->behind_bytes : -1);
    admin_report_put_number(out, "lanes", (int64_t)n_lanes);
    admin_report_put_number(out, "in_flight", (int64_t)count_read(&lanes->in_flight));
    admin_report_put_number(out, "requests", (int64_t)count_read(&lanes->requests));
    admin_report_put_number(out, "errors", (int64_t)count_read(&lanes->error_replies));
    admin_report_put_number(out, "lost", (int64_t)n_lost);
    admin_report_put_number(out, "changed_ms_ago",
                            has_changed ? (int64_t)(s->unix_ms - node->changed_unix_ms) : -1);
    put_text(out, "why", admin_report_why_of(node));
    admin_report_put_number(out, "slots", node->slots);
    admin_report_put_number(out, "slots_moving", node->slots_moving);
}

static void report_upstream(struct admin_command *admin_command,
                            const struct stats_collector *collector, uint64_t now_ns)
{
    struct snapshot *snapshot = collector_look(collector);
    (void)now_ns;
    admin_command->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    build_array(&admin_command->rows, snapshot->n_nodes);
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        put_row(&admin_command->rows, &snapshot->nodes[i], snapshot);
    snapshot_put(snapshot);
}

/* ---- reports by kind ---- */

static void (*const kinds[])(struct admin_command *admin_command,
                             const struct stats_collector *collector, uint64_t now_ns) = {
    [ADMIN_LIST] = report_limits,         [ADMIN_TOP] = report_heaviest,
    [ADMIN_BLOCKS] = report_blocked,      [ADMIN_INFO] = report_info,
    [ADMIN_SUGGEST] = report_suggestions, [ADMIN_UPSTREAM] = report_upstream,
};

bool admin_command_is_report(const struct admin_command *admin_command)
{
    return admin_command->kind < sizeof kinds / sizeof kinds[0] &&
           kinds[admin_command->kind] != NULL;
}

void admin_report(struct admin_command *admin_command, const struct stats_collector *collector,
                  uint64_t now_ns)
{
    kinds[admin_command->kind](admin_command, collector, now_ns);
    admin_command->is_starved |= admin_command->rows.is_broken;
}

void admin_report_differences(struct admin_command *admin_command)
{
    struct build *out = &admin_command->rows;
    build_array(out, admin_command->n_differences);
    for (size_t i = 0; i < admin_command->n_differences; i++) {
        const struct difference *one = &admin_command->differences[i];
        const char *const fields[] = {"section", one->section, "what", one->what,
                                      "running", one->running, "file", one->file};
        build_map(out, 4);
        for (size_t j = 0; j < sizeof fields / sizeof fields[0]; j++)
            build_bulk_str(out, fields[j]);
    }
    admin_command->is_starved |= out->is_broken;
}
