#include "quota/report_fields.h"

#include "base/clock.h"

int64_t report_ms_up(uint64_t ns)
{
    uint64_t ms = ns_to_ms_up(ns);
    return ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

void report_field(struct build *out, const char *name, struct slice value)
{
    build_bulk_str(out, name);
    build_bulk(out, value);
}

void report_number(struct build *out, const char *name, uint64_t value)
{
    build_bulk_str(out, name);
    build_int(out, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

static void over(struct build *out, const struct limit *limit)
{
    char text[LIMIT_ACTION_MAX];
    build_bulk_str(out, "over");
    build_bulk(out, slice_of(text, limit_print_action(limit, text)));
}

bool report_is_set(const struct limit *limit)
{
    return limit->is_own || limit->until_ns > 0;
}

static void ends_in(struct build *out, uint64_t until_ns, uint64_t now_ns)
{
    build_bulk_str(out, "ends_in_ms");
    build_int(out, until_ns == 0 ? -1 : until_ns > now_ns ? report_ms_up(until_ns - now_ns) : 0);
}

void report_set_fields(struct build *out, const struct limit *limit, struct slice subject, uint64_t now_ns)
{
    if (!report_is_set(limit))
        return;
    build_bulk_str(out, "for");
    if (limit->is_own)
        build_bulk(out, subject);
    else
        build_nil(out);
    ends_in(out, limit->until_ns, now_ns);
}

void report_limit(struct build *out, const struct limit *limit)
{
    char rate[LIMIT_RATE_MAX];
    limit_print_rate(limit, rate);
    report_field(out, "limit", slice_str(limit->label));
    report_field(out, "what", limit_line(limit));
    report_field(out, "rate", slice_str(rate));
    report_number(out, "burst", limit->rate.burst);
    report_field(out, "per", scope_name((enum scope)limit->scope));
    over(out, limit);
}

void report_block(struct build *out, const struct block *block, uint64_t now_ns)
{
    report_field(out, "reason", block->reason);
    ends_in(out, block->until_ns, now_ns);
}
