#include "quota/renewal.h"

#include <string.h>

#include "base/log.h"
#include "quota/question.h"

static bool is_wrong_type(struct slice error)
{
    static const struct slice word = {"-WRONGTYPE ", 11};
    return error.len > word.len && memcmp(error.at, word.at, word.len) == 0;
}

bool renewal_is_due(const struct decision *call, struct slice error)
{
    bool is_named = call->tally != NULL || call->ask.is_named;
    if (!is_named || call->is_renewed || call->owner == NULL || !is_wrong_type(error))
        return false;
    if (call->is_waiting)
        return false;                                /* what is there now may be of the limit as it is now */
    return !call->ask.is_peek || call->n_parts == 0; /* what the others hold is not known */
}

void renewal_look(const struct decision *call, struct quota_outcome *outcome)
{
    int64_t numbers[QUOTA_NUMBERS_MAX] = {0};
    bool fits = true;
    for (unsigned i = 0; i < call->ask.rule.n_rates; i++)
        fits = fits && call->ask.cost <= call->ask.rule.rates[i].limit;
    numbers[0] = !quota_is_funnel(call->ask.rule.kind) && fits;
    quota_outcome(&call->ask, numbers, 1, 0, outcome);
}

/* The deletion of the next key is what the call asks. */
static void take_next(struct decision *call)
{
    uint8_t kind = call->n_parts > 0 ? call->asks[call->n_renewed].rule.kind : call->kind;
    if (call->n_parts > 0)
        call->key = call->asks[call->n_renewed].key;
    call->ask.max = quota_letter(kind);
    call->n_renewed++;
}

void renewal_begin(struct decision *call)
{
    call->is_renewed = true;
    call->kind = call->ask.rule.kind;
    call->all_keys = call->key;
    call->ask.ttl_ms = 0;
    call->ask.rule.kind = QUOTA_ANEW;
    call->ask.n_parts = 0;
    call->n_keys = 0;
    take_next(call);
}

void renewal_go_on(struct decision *call, bool is_deleted)
{
    const struct named_tally *tally = call->n_parts > 0 ? call->parts[call->n_renewed - 1].tally : call->tally;
    if (is_deleted)
        log_at(LOG_SITE_NAMED_LIMIT, LOG_WARN, "a key of the limit %s has another algorithm's state: it begins anew",
               tally->name);
    if (call->n_renewed < call->n_parts)
        take_next(call);
    else
        renewal_end(call);
}

void renewal_end(struct decision *call)
{
    call->ask.rule.kind = call->kind;
    call->ask.n_parts = call->n_parts;
    call->n_keys = call->n_parts;
    call->key = call->all_keys;
}
