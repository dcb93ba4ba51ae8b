#include "tests/sim/spent.h"

static const struct charge *charge_at(const struct spent *spent, uint64_t i)
{
    return &spent->charges[i % SPENT_KEPT];
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When the funnel is empty after all charges. */
static uint64_t empty_at(const struct spent *spent)
{
    return spent->n > 0 ? charge_at(spent, spent->n - 1)->empty_ns : 0;
}

static void put(struct spent *spent, const struct charge *charge)
{
    spent->charges[spent->n++ % SPENT_KEPT] = *charge;
}

void spent_add(struct spent *spent, uint64_t now_ns, uint64_t interval_ns)
{
    const struct charge charge = {now_ns, later(empty_at(spent), now_ns) + interval_ns, false};
    put(spent, &charge);
}

void spent_fill(struct spent *spent, uint64_t now_ns, uint64_t empty_ns)
{
    const struct charge charge = {now_ns, later(empty_at(spent), empty_ns), true};
    put(spent, &charge);
}

uint64_t spent_until(const struct spent *spent, uint64_t at_ns, unsigned more, uint64_t interval_ns)
{
    uint64_t first = spent->n > SPENT_KEPT ? spent->n - SPENT_KEPT : 0;
    /* behind the charges made by at_ns; later charges may have been made at at_ns */
    uint64_t last = spent->n;
    for (; last > first && charge_at(spent, last - 1)->latest_ns > at_ns; last--)
        if (charge_at(spent, last - 1)->is_guess)
            return UINT64_MAX;
    if (last == first && first > 0)
        return UINT64_MAX;
    uint64_t empty_ns = last > 0 ? charge_at(spent, last - 1)->empty_ns : 0;
    return later(empty_ns, at_ns) + (spent->n - last + more) * interval_ns;
}
