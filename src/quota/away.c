#include "quota/away.h"

#include "base/clock.h"
#include "quota/local.h"
#include "upstream/node/not_run.h"

#define RETRY_NS ((int64_t)NS_PER_S) /* chosen: the time is unknown, and -1 would mean never */

/* ---- errors ---- */

static const struct row {
    const char *code;
    enum unable unable;
} rows[] = {
    {"-READONLY", UNABLE_NOT_RUN},         {"-LOADING", UNABLE_NOT_RUN},
    {"-MASTERDOWN", UNABLE_NOT_RUN},       {"-OOM", UNABLE_TO_DECIDE},
    {"-BUSY", UNABLE_TO_DECIDE},           {"-MISCONF", UNABLE_TO_DECIDE},
    {"-NOREPLICAS", UNABLE_TO_DECIDE},     {"-TRYAGAIN", UNABLE_TRY_AGAIN},
    {"-CLUSTERDOWN", UNABLE_CLUSTER_DOWN},
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
        code != NULL ? of_code(slice_of(code + 2, (size_t)(error.at + error.len - code) - 2))
                     : UNABLE_NO;
    return unable == UNABLE_NOT_RUN || unable == UNABLE_TO_DECIDE ? unable : UNABLE_NO;
}

/* ---- decisions ---- */

/* True if the request has no option that only Redis can decide. */
static bool away_is_plain(const struct decision_request *ask)
{
    return ask->mode == QUOTA_TAKE && !ask->counts_all && !ask->is_first && ask->cost > 0;
}

static enum quota_when_down when_down_of(const struct decision *decision, unsigned i)
{
    return decision->n_parts > 0 ? decision->parts[i].when_down : decision->when_down;
}

/* Returns the limits with this when-down, as bits. */
static unsigned saying(const struct decision *decision, enum quota_when_down when_down)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < decision_request_count(&decision->ask); i++)
        if (when_down_of(decision, i) == when_down)
            bits |= 1U << i;
    return bits;
}

/* Counts the call at the limits with when-down = local, as one call about these limits alone. */
static enum away away_count(const struct decision *decision, const struct quota_settings *settings,
                            struct local_time time, struct quota_outcome *outcome)
{
    struct decision_request asks[QUOTA_PARTS_MAX];
    uint64_t hashes[QUOTA_PARTS_MAX];
    uint8_t indexes[QUOTA_PARTS_MAX] = {0}, n = 0;
    /* all in shadow mode: else the call is denied already */
    unsigned refusing = saying(decision, QUOTA_DOWN_DENY);
    for (unsigned i = 0; i < decision_request_count(&decision->ask); i++) {
        const struct decision_request *one = decision_request_at(&decision->ask, i);
        if (when_down_of(decision, i) != QUOTA_DOWN_LOCAL)
            continue;
        if (!away_is_plain(one))
            return AWAY_ERROR;
        hashes[n] = hash_bytes(settings->key, one->key);
        indexes[n] = (uint8_t)i;
        asks[n++] = *one;
    }
    struct decision_request some = decision->ask;
    some.parts = asks;
    some.n_parts = decision->n_parts > 0 ? n : 0;
    if (!local_decide(settings->local, &some, hashes, time, outcome))
        return AWAY_ERROR;
    for (unsigned i = 0; i < some.n_parts; i++)
        refusing |= ((unsigned)outcome->refusing >> i & 1U) << indexes[i];
    outcome->part = indexes[outcome->part];
    outcome->refusing = (uint8_t)refusing;
    return AWAY_COUNTED;
}

enum away away_decide(const struct decision *decision, const struct quota_settings *settings,
                      struct local_time time, struct quota_outcome *outcome)
{
    unsigned denying = saying(decision, QUOTA_DOWN_DENY),
             n = decision_request_count(&decision->ask), denier = 0;
    while (denier < n &&
           ((denying >> denier & 1) == 0 || decision_request_at(&decision->ask, denier)->is_shadow))
        denier++;
    bool is_denied = denier < n;
    if (!quota_is_decision(&decision->ask) || saying(decision, QUOTA_DOWN_ERROR) != 0)
        return AWAY_ERROR;
    if (!is_denied && saying(decision, QUOTA_DOWN_LOCAL) != 0)
        return away_count(decision, settings, time, outcome);
    unsigned part = is_denied ? denier : 0;
    *outcome = (struct quota_outcome){
        .limit = decision_request_at(&decision->ask, part)->rule.rates[0].limit,
        .granted = is_denied ? 0 : decision->ask.cost,
        .retry_ns = is_denied ? RETRY_NS : -1,
        .is_limited = is_denied,
        .part = (uint8_t)part,
        .refusing = (uint8_t)denying,
    };
    return AWAY_UNASKED;
}

bool away_means(const struct decision *decision, struct slice error)
{
    enum unable unable = unable_of(error);
    return decision->is_down_by_error && (unable == UNABLE_NOT_RUN || unable == UNABLE_TO_DECIDE);
}
