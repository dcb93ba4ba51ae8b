#include "run/commands/order_report.h"

#include "limit/policy/exceptions.h"
#include "quota/report.h"
#include "resp/build.h"

static void report_limits(struct order *order, const struct rules *rules, const struct front_settings *settings,
                          uint64_t now_ns)
{
    const struct report_list list = {
        .policies = rules->policies,
        .variants = exceptions_variants(rules->exceptions),
        .tallies = settings->tallies,
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

static void report_heaviest(struct order *order, const struct rules *rules, const struct front_settings *settings,
                            uint64_t now_ns)
{
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

bool order_is_report(const struct order *order)
{
    return order->kind == ORDER_LIST || order->kind == ORDER_TOP || order->kind == ORDER_BLOCKS;
}

void order_report(struct order *order, const struct rules *rules, const struct front_settings *settings,
                  uint64_t now_ns)
{
    if (order->kind == ORDER_LIST)
        report_limits(order, rules, settings, now_ns);
    else if (order->kind == ORDER_TOP)
        report_heaviest(order, rules, settings, now_ns);
    else
        report_blocks(&order->rows, exceptions_blocks(rules->exceptions), order->wanted.n, now_ns);
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
