#include "quota/outcome_count.h"

static void count_for(const struct decision *decision, const struct exchange *exchange, struct named_tally *tally,
                      struct slice key, bool is_limited, bool is_shadow)
{
    if (tally == NULL)
        return;
    uint64_t now_ns = exchange_now_ns(exchange);
    uint64_t ns = decision->arrived_ns > 0 && now_ns > decision->arrived_ns ? now_ns - decision->arrived_ns : 0;
    enum tally_result result = decision->is_failed ? TALLY_ERROR
                               : !is_limited       ? TALLY_PASSED
                               : is_shadow         ? TALLY_SHADOWED
                                                   : TALLY_LIMITED;
    named_tally_add(tally, result, ns);
    if (is_limited && !decision->is_failed)
        top_add(exchange->settings->limited, TOP_REFUSED, slice_str(tally->name), key, exchange_hash(exchange, key), 1,
                now_ns);
}

void outcome_count(const struct decision *decision, const struct exchange *exchange)
{
    if (decision->ask.is_peek)
        return;
    count_for(decision, exchange, decision->tally, decision->key, decision->is_limited, decision->is_shadow);
    for (unsigned i = 0; i < decision->n_parts; i++) {
        const struct quota_ask *part = &decision->asks[i];
        bool is_refused = (decision->refusing >> i & 1) != 0;
        if (!part->is_peek)
            count_for(decision, exchange, decision->parts[i].tally, part->key, is_refused, part->is_shadow);
    }
}
