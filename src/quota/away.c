#include "quota/away.h"

#include "base/clock.h"
#include "quota/local.h"
#include "upstream/node/redirect.h"

#define RETRY_NS ((int64_t)NS_PER_S) /* unknown; -1 would mean never */

/* ---- errors ---- */

static const struct row {
    const char *code;
    enum unable unable;
} rows[] = {
    {"-READONLY", UNABLE_NOT_RUN},     {"-LOADING", UNABLE_NOT_RUN},    {"-MASTERDOWN", UNABLE_NOT_RUN},
    {"-OOM", UNABLE_TO_DECIDE},        {"-BUSY", UNABLE_TO_DECIDE},     {"-MISCONF", UNABLE_TO_DECIDE},
    {"-NOREPLICAS", UNABLE_TO_DECIDE}, {"-TRYAGAIN", UNABLE_TRY_AGAIN}, {"-CLUSTERDOWN", UNABLE_CLUSTER_DOWN},
};

static bool has_code(struct slice text, const char *code)
{
    struct slice word = slice_str(code);
    return text.len > word.len && slice_begins(text, word) && text.at[word.len] == ' ';
}

static enum unable of_code(struct slice text)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has_code(text, rows[i].code))
            return rows[i].unable;
    return redirect_is(text) ? UNABLE_REDIRECTED : UNABLE_NO;
}

enum unable unable_of(struct slice error)
{
    if (!slice_begins(error, SLICE("-ERR Error running script")))
        return of_code(error);
    const char *code = memmem(error.at, error.len, ": -", 3);
    enum unable unable =
        code != NULL ? of_code(slice_of(code + 2, (size_t)(error.at + error.len - code) - 2)) : UNABLE_NO;
    return unable == UNABLE_NOT_RUN || unable == UNABLE_TO_DECIDE ? unable : UNABLE_NO;
}

/* ---- decisions ---- */

/* Options that change how it is decided need Redis. */
static bool is_plain(const struct quota_ask *ask)
{
    return ask->mode == QUOTA_TAKE && !ask->counts_all && !ask->is_first && ask->cost > 0;
}

/* Not counted: allow or deny, with the fields of an outcome by this rule. */
static struct quota_outcome unasked(const struct decision *decision, const struct quota_rule *rule, bool is_denied)
{
    return (struct quota_outcome){
        .limit = rule->rates[0].limit,
        .granted = is_denied ? 0 : decision->ask.cost,
        .retry_ns = is_denied ? RETRY_NS : -1,
        .is_limited = is_denied,
    };
}

/* ---- one key ---- */

static enum away count_one(const struct decision *decision, const struct quota_settings *settings,
                           struct local_time time, struct quota_outcome *outcome)
{
    uint64_t hash = hash_bytes(settings->key, decision->key);
    bool is_counted = is_plain(&decision->ask) && local_decide(settings->local, &decision->ask, &hash, time, outcome);
    return is_counted ? AWAY_COUNTED : AWAY_ERROR;
}

static enum away decide_one(const struct decision *decision, const struct quota_settings *settings,
                            struct local_time time, struct quota_outcome *outcome)
{
    if (!quota_is_rated(&decision->ask) || decision->when_down == QUOTA_DOWN_ERROR)
        return AWAY_ERROR;
    if (decision->when_down == QUOTA_DOWN_LOCAL)
        return count_one(decision, settings, time, outcome);
    *outcome = unasked(decision, &decision->ask.rule, decision->when_down == QUOTA_DOWN_DENY);
    return AWAY_UNASKED;
}

/* ---- several ---- */

/* The parts with this when-down, as bits. */
static uint8_t saying(const struct decision *decision, enum quota_when_down when_down)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < decision->n_parts; i++)
        if (decision->parts[i].when_down == when_down)
            bits |= 1U << i;
    return (uint8_t)bits;
}

/* Those that are counted in weir are asked as one call of only them. */
static enum away count_some(const struct decision *decision, const struct quota_settings *settings,
                            struct local_time time, struct quota_outcome *outcome)
{
    struct quota_ask asks[QUOTA_PARTS_MAX];
    uint64_t hashes[QUOTA_PARTS_MAX];
    uint8_t indexes[QUOTA_PARTS_MAX] = {0};
    unsigned refusing = saying(decision, QUOTA_DOWN_DENY); /* shadows */
    struct quota_ask some = decision->ask;
    some.parts = asks;
    some.n_parts = 0;
    for (uint8_t i = 0; i < decision->n_parts; i++) {
        if (decision->parts[i].when_down != QUOTA_DOWN_LOCAL)
            continue;
        if (!is_plain(&decision->asks[i]))
            return AWAY_ERROR;
        hashes[some.n_parts] = hash_bytes(settings->key, decision->asks[i].key);
        indexes[some.n_parts] = i;
        asks[some.n_parts++] = decision->asks[i];
    }
    if (!local_decide(settings->local, &some, hashes, time, outcome))
        return AWAY_ERROR;
    for (unsigned i = 0; i < some.n_parts; i++)
        refusing |= ((unsigned)outcome->refusing >> i & 1U) << indexes[i];
    outcome->part = indexes[outcome->part];
    outcome->refusing = (uint8_t)refusing;
    return AWAY_COUNTED;
}

static enum away decide_several(const struct decision *decision, const struct quota_settings *settings,
                                struct local_time time, struct quota_outcome *outcome)
{
    uint8_t denying = saying(decision, QUOTA_DOWN_DENY), part = 0;
    while (part < decision->n_parts && ((denying >> part & 1) == 0 || decision->asks[part].is_shadow))
        part++;
    bool is_denied = part < decision->n_parts;
    if (saying(decision, QUOTA_DOWN_ERROR) != 0)
        return AWAY_ERROR;
    if (!is_denied && saying(decision, QUOTA_DOWN_LOCAL) != 0)
        return count_some(decision, settings, time, outcome);
    part = is_denied ? part : 0;
    *outcome = unasked(decision, &decision->asks[part].rule, is_denied);
    outcome->part = part;
    outcome->refusing = denying;
    return AWAY_UNASKED;
}

enum away away_decide(const struct decision *decision, const struct quota_settings *settings, struct local_time time,
                      struct quota_outcome *outcome)
{
    return (decision->n_parts > 0 ? decide_several : decide_one)(decision, settings, time, outcome);
}

bool away_means(const struct decision *decision, struct slice error)
{
    enum unable unable = unable_of(error);
    return decision->is_down_by_error && (unable == UNABLE_NOT_RUN || unable == UNABLE_TO_DECIDE);
}
