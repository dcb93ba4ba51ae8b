#include "run/commands/order_report.h"

#include "admin/info.h"
#include "limit/policy/exceptions.h"
#include "quota/report.h"
#include "resp/build.h"
#include "run/commands/suggest.h"

/* ---- limits and subjects ---- */

static void report_limits(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
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
        .filter = {.glob = slice_of(order->key, order->key_len),
                   .stopping = order->wanted.is_refusing ? settings->stopping : NULL,
                   .limited = settings->quota.limited},
    };
    report_list(&order->rows, &list, now_ns);
}

static void report_heaviest(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    const struct front_settings *settings = collector->settings;
    const struct report_top asked = {
        .policies = rules->policies,
        .block_id = rules->block_id,
        .tops = settings->tops,
        .n_workers = settings->n_workers,
        .by = order->wanted.by,
        .n = order->wanted.n,
    };
    if (asked.by == TOP_BY_COUNT)
        report_top_limited(&order->rows, settings->quota.limited, asked.n, now_ns);
    else
        report_top(&order->rows, &asked, now_ns);
}

static void report_blocked(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    report_blocks(&order->rows, exceptions_blocks(rules->exceptions), order->wanted.n, now_ns);
}

static void report_suggestions(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    suggest_carry_out(order, config_manager_rules(collector->manager)->policies, collector->settings, now_ns);
}

/* ---- INFO, and a row for each server of the upstream ---- */

static void report_info(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    struct snapshot *snapshot = collector_look(collector);
    (void)now_ns;
    order->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    struct text text = {0};
    info_write(&text, snapshot, order->what != NULL ? slice_str(order->what) : SLICE(""));
    order->is_starved = text.is_broken;
    order->text = text.at;
    order->text_len = text.len;
    snapshot_put(snapshot);
}

static void put_text(struct build *out, const char *name, const char *text)
{
    build_bulk_str(out, name);
    build_bulk_str(out, text);
}

static void put_number(struct build *out, const char *name, int64_t n)
{
    build_bulk_str(out, name);
    build_int(out, n);
}

/*
 * Returns why weir cannot use the server, or the first error of the addresses that weir dialled;
 * "": no error.
 */
static const char *why_of(const struct snapshot_node *node)
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
    put_number(out, "epoch", (int64_t)node->epoch);
    put_number(out, "lag_ms", node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->lag_ms : -1);
    put_number(out, "behind_bytes", node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->behind_bytes : -1);
    put_number(out, "lanes", (int64_t)n_lanes);
    put_number(out, "in_flight", (int64_t)count_read(&lanes->in_flight));
    put_number(out, "requests", (int64_t)count_read(&lanes->requests));
    put_number(out, "errors", (int64_t)count_read(&lanes->error_replies));
    put_number(out, "lost", (int64_t)n_lost);
    put_number(out, "changed_ms_ago", has_changed ? (int64_t)(s->unix_ms - node->changed_unix_ms) : -1);
    put_text(out, "why", why_of(node));
    put_number(out, "slots", node->slots);
    put_number(out, "slots_moving", node->slots_moving);
}

static void report_upstream(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    struct snapshot *snapshot = collector_look(collector);
    (void)now_ns;
    order->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    build_array(&order->rows, snapshot->n_nodes);
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        put_row(&order->rows, &snapshot->nodes[i], snapshot);
    snapshot_put(snapshot);
}

/* ---- reports by kind ---- */

static void (*const kinds[])(struct order *order, const struct stats_collector *collector, uint64_t now_ns) = {
    [ORDER_LIST] = report_limits, [ORDER_TOP] = report_heaviest,        [ORDER_BLOCKS] = report_blocked,
    [ORDER_INFO] = report_info,   [ORDER_SUGGEST] = report_suggestions, [ORDER_UPSTREAM] = report_upstream,
};

bool order_is_report(const struct order *order)
{
    return order->kind < sizeof kinds / sizeof kinds[0] && kinds[order->kind] != NULL;
}

void order_report(struct order *order, const struct stats_collector *collector, uint64_t now_ns)
{
    kinds[order->kind](order, collector, now_ns);
    order->is_starved |= order->rows.is_broken;
}

void order_report_differences(struct order *order)
{
    struct build *out = &order->rows;
    build_array(out, order->n_differences);
    for (size_t i = 0; i < order->n_differences; i++) {
        const struct difference *one = &order->differences[i];
        const char *const fields[] = {"section", one->section, "what", one->what,
                                      "running", one->running, "file", one->file};
        build_map(out, 4);
        for (size_t j = 0; j < sizeof fields / sizeof fields[0]; j++)
            build_bulk_str(out, fields[j]);
    }
    order->is_starved |= out->is_broken;
}
