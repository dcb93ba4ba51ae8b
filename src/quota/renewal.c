#include "quota/renewal.h"

#include <string.h>

#include "base/log.h"
#include "quota/question.h"

static bool is_wrong_type(struct slice error)
{
    static const struct slice word = {"-WRONGTYPE ", 11};
    return error.len > word.len && memcmp(error.at, word.at, word.len) == 0;
}

bool renewal_is_due(const struct decision *decision, struct slice error)
{
    bool is_named = decision->tally != NULL || decision->ask.is_named;
    if (!is_named || decision->is_renewed || decision->owner == NULL || !is_wrong_type(error))
        return false;
    if (decision->is_waiting)
        return false;                                        /* what is there now may be of the limit as it is now */
    return !decision->ask.is_peek || decision->n_parts == 0; /* what the others hold is not known */
}

void renewal_look(const struct decision *decision, struct quota_outcome *outcome)
{
    int64_t numbers[QUOTA_NUMBERS_MAX] = {0};
    bool fits = true;
    for (unsigned i = 0; i < decision->ask.rule.n_rates; i++)
        fits = fits && decision->ask.cost <= decision->ask.rule.rates[i].limit;
    numbers[0] = !quota_is_funnel(decision->ask.rule.kind) && fits;
    quota_outcome(&decision->ask, numbers, 1, 0, outcome);
}

/* The deletion of the next key is what the call asks. */
static void take_next(struct decision *decision)
{
    uint8_t kind = decision->n_parts > 0 ? decision->asks[decision->n_renewed].rule.kind : decision->kind;
    if (decision->n_parts > 0)
        decision->key = decision->asks[decision->n_renewed].key;
    decision->ask.max = quota_letter(kind);
    decision->n_renewed++;
}

void renewal_begin(struct decision *decision)
{
    decision->is_renewed = true;
    decision->kind = decision->ask.rule.kind;
    decision->all_keys = decision->key;
    decision->ask.ttl_ms = 0;
    decision->ask.rule.kind = QUOTA_ANEW;
    decision->ask.n_parts = 0;
    decision->n_keys = 0;
    take_next(decision);
}

void renewal_go_on(struct decision *decision, bool is_deleted)
{
    const struct named_tally *tally =
        decision->n_parts > 0 ? decision->parts[decision->n_renewed - 1].tally : decision->tally;
    if (is_deleted)
        log_at(LOG_SITE_NAMED_LIMIT, LOG_WARN, "a key of the limit %s has another algorithm's state: it begins anew",
               tally->name);
    if (decision->n_renewed < decision->n_parts)
        take_next(decision);
    else
        renewal_end(decision);
}

void renewal_end(struct decision *decision)
{
    decision->ask.rule.kind = decision->kind;
    decision->ask.n_parts = decision->n_parts;
    decision->n_keys = decision->n_parts;
    decision->key = decision->all_keys;
}
