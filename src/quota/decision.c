#include "quota/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "quota/request_parse.h"
#include "quota/denials.h"
#include "quota/outcome.h"
#include "quota/prefix.h"
#include "resp/emit.h"

/*
 * Writes "KEY" or "NAME:KEY" behind the prefix, as the key is in Redis. The name is in lower case.
 * The name keeps two named limits on one key apart.
 */
static struct slice put_key(char **at, struct slice prefix, struct slice name, struct slice key)
{
    char *start = *at;
    *at = mempcpy(*at, prefix.at, prefix.len);
    for (size_t i = 0; i < name.len; i++)
        *(*at)++ = ascii_lower(name.at[i]);
    if (name.len > 0)
        *(*at)++ = ':';
    *at = mempcpy(*at, key.at, key.len);
    return slice_of(start, (size_t)(*at - start));
}

static struct slice put_bulk(char **at, struct slice prefix, struct slice name, struct slice key)
{
    size_t len = prefix.len + (name.len > 0 ? name.len + 1 : 0) + key.len;
    *at += emit_header(*at, '$', (int64_t)len);
    struct slice content = put_key(at, prefix, name, key);
    *at = mempcpy(*at, "\r\n", 2);
    return content;
}

/* Writes all keys of a RESET, each as a bulk. */
static void put_keys(struct decision *decision, char *at, struct slice prefix)
{
    struct slice key;
    char *start = at;
    for (; argv_next(&decision->ask.keys, &key); decision->n_keys++)
        (void)put_bulk(&at, prefix, SLICE(""), key);
    decision->key = slice_of(start, (size_t)(at - start));
}

/* False: getrandom failed. */
static bool make_token(struct decision *decision)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        decision->token[2 * i] = hex[bytes[i] >> 4];
        decision->token[2 * i + 1] = hex[bytes[i] & 15];
    }
    return true;
}

static void init(struct decision *decision, struct quota *quota, void *owner, bool is_resp3)
{
    decision->quota = quota;
    decision->owner = owner;
    list_init(&decision->in_client);
    list_init(&decision->in_entry);
    list_init(&decision->in_listener);
    build_init(&decision->reply, is_resp3);
}

/*
 * Writes the keys of several parts, each as a bulk, and behind them the keys as the client wrote
 * them.
 */
static void decision_put_parts(struct decision *decision, char *at, struct slice prefix)
{
    char *start = at;
    for (unsigned i = 0; i < decision->n_parts; i++) {
        struct decision_request *part = &decision->asks[i];
        struct slice key = put_bulk(&at, prefix, part->name, part->key);
        decision->parts[i].shown =
            decision->ask.is_named ? slice_str(decision->parts[i].counters->name) : part->key;
        part->key = key;
        part->name = slice_of("", 0);
    }
    decision->n_keys = decision->n_parts;
    decision->key = slice_of(start, (size_t)(at - start));
    for (unsigned i = 0; i < decision->n_parts && !decision->ask.is_named; i++)
        decision->parts[i].shown = put_key(&at, SLICE(""), SLICE(""), decision->parts[i].shown);
}

/* Copies the parts of the request that the decision needs. */
static void decision_keep(struct decision *decision, const struct decision_request *ask,
                          struct slice prefix)
{
    char *at = decision->text;
    decision->ask = *ask;
    if (ask->n_parts > 0) {
        decision_put_parts(decision, at, prefix);
        decision->ask.parts = decision->asks;
        return;
    }
    if (ask->rule.kind == QUOTA_RESET) {
        put_keys(decision, at, prefix);
        return;
    }
    decision->key = put_key(&at, prefix, ask->name, ask->key);
    if (ask->token.len > 0)
        decision->ask.token = put_key(&at, SLICE(""), SLICE(""), ask->token);
    decision->ask.key = decision->key;
    decision->ask.name = slice_of("", 0);
}

/* NULL: no limit has that name, and `error` is set. */
static const struct named_limit *find_named(const struct named *named, struct slice name,
                                            struct build *error)
{
    char text[256];
    const struct named_limit *limit = named_find(named, name);
    if (limit != NULL)
        return limit;
    struct slice near = named_near(named, name);
    int shown = (int)(name.len < 64 ? name.len : 64);
    int len = snprintf(text, sizeof text,
                       near.len > 0 ? "ERR no limit is named '%.*s' (did you mean %.*s?)"
                                    : "ERR no limit is named '%.*s'%.*s",
                       shown, name.at, (int)near.len, near.at);
    build_error(error, slice_of(text, (size_t)len));
    return NULL;
}

/* The parsed request, and the named limit of each key. */
struct asked {
    struct decision_request ask;
    struct decision_request parts[QUOTA_PARTS_MAX];
    const struct named_limit *limits[QUOTA_PARTS_MAX]; /* NULL: not a named limit */
};

/* False: no limit has that name, or the call does not fit the limit. `error` is set. */
static bool decision_resolve(struct asked *asked, const struct quota_context *context,
                             struct build *error)
{
    char text[256];
    bool has_parts = asked->ask.n_parts > 0;
    struct quota_rule rule;
    for (unsigned i = 0; i < (has_parts ? asked->ask.n_parts : 1); i++) {
        struct decision_request *ask = has_parts ? &asked->parts[i] : &asked->ask;
        const struct named_limit *limit = find_named(context->named, ask->name, error);
        if (limit == NULL)
            return false;
        asked->limits[i] = limit;
        rule = named_rule(limit, ask->key, context->now_ns);
        if (has_parts) {
            ask->rule = rule;
            ask->is_shadow = limit->is_shadow;
        }
    }
    if (decision_request_resolve(&asked->ask, asked->parts, has_parts ? NULL : &rule, text,
                                 sizeof text))
        return true;
    build_error(error, slice_str(text));
    return false;
}

/* Returns the number of bytes of a call's text. */
static size_t text_room(const struct asked *asked, struct slice request, struct slice prefix)
{
    size_t room = request.len + 1;
    if (asked->ask.n_parts > 0)
        return 2 * room + asked->ask.n_parts * (prefix.len + EMIT_HEADER_MAX + 4);
    if (asked->ask.rule.kind == QUOTA_RESET)
        return room + asked->ask.keys.left * (prefix.len + EMIT_HEADER_MAX);
    return room + prefix.len;
}

static void decision_take_limit(const struct named_limit *limit, enum quota_when_down otherwise,
                                struct named_counters **counters, enum quota_when_down *when_down)
{
    *when_down = limit != NULL && limit->has_when_down ? limit->when_down : otherwise;
    *counters = limit != NULL ? named_counters_get(limit->counters) : NULL;
}

/* The operator's penalty replaces the penalty that the client asked for. */
static void take_penalty(const struct named_limit *limit, struct decision_request *ask)
{
    if (limit != NULL && limit->penalty.first_ms > 0)
        ask->penalty = limit->penalty;
}

static bool is_down_by_error(const struct named_limit *limit, bool otherwise)
{
    return limit != NULL && limit->has_when_error ? limit->is_down_by_error : otherwise;
}

/* Applies the settings of the call's named limits. False: out of memory. */
static bool take_limits(struct decision *decision, const struct asked *asked,
                        const struct quota_context *context)
{
    enum quota_when_down otherwise = context->when_down;
    unsigned n = asked->ask.n_parts;
    if (n > 0) {
        decision->asks = calloc(n, sizeof *decision->asks);
        decision->parts = calloc(n, sizeof *decision->parts);
        if (decision->asks == NULL || decision->parts == NULL)
            return false;
        memcpy(decision->asks, asked->parts, n * sizeof *decision->asks);
        decision->n_parts = asked->ask.n_parts;
    }
    decision->is_down_by_error =
        n > 0 || is_down_by_error(asked->limits[0], context->is_down_by_error);
    for (unsigned i = 0; i < n; i++) {
        (void)zone_get(decision->asks[i].rule.zone);
        decision->is_down_by_error &= is_down_by_error(asked->limits[i], context->is_down_by_error);
        decision_take_limit(asked->limits[i], otherwise, &decision->parts[i].counters,
                            &decision->parts[i].when_down);
        take_penalty(asked->limits[i], &decision->asks[i]);
    }
    if (n == 0 && quota_is_decision(&asked->ask))
        decision_take_limit(asked->limits[0], otherwise, &decision->counters, &decision->when_down);
    decision->is_shadow = n == 0 && asked->limits[0] != NULL && asked->limits[0]->is_shadow;
    return true;
}

/* False: the request is invalid, and `error` is set. */
static bool decision_parse(struct asked *asked, struct request_memo *memo, struct slice name,
                           struct slice request, struct build *error)
{
    char why[256];
    if (request_memo_find(memo, request, &asked->ask))
        return true;
    if (!decision_request_parse(&asked->ask, asked->parts, name, request, why, sizeof why)) {
        build_error(error, slice_str(why));
        return false;
    }
    request_memo_note(memo, request, &asked->ask);
    return true;
}

struct decision *decision_new(struct quota *quota, const struct quota_context *context,
                              struct request_memo *memo, struct slice name, struct slice request,
                              void *owner, struct build *error)
{
    struct asked asked;
    memset(asked.limits, 0, sizeof asked.limits);
    if (!decision_parse(&asked, memo, name, request, error))
        return NULL;
    if ((asked.ask.name.at != NULL || asked.ask.is_named) &&
        !decision_resolve(&asked, context, error))
        return NULL;
    asked.ask.is_unprefixed = asked.ask.is_cell && context->cell == QUOTA_CELL_RAW;
    if (asked.ask.is_unprefixed && !context->has_database) {
        build_error(error,
                    SLICE("ERR weir does not know the key's database after SELECT inside MULTI"));
        return NULL;
    }
    char spelled[PREFIX_ROOM];
    struct slice prefix = SLICE("");
    if (!asked.ask.is_unprefixed && !prefix_of(context->prefix, context->user, spelled, &prefix)) {
        build_error(
            error, SLICE("ERR the user's name is too long for keys of its own: at most 255 bytes"));
        return NULL;
    }
    struct decision *decision = calloc(1, sizeof *decision + text_room(&asked, request, prefix));
    if (decision != NULL)
        init(decision, quota, owner, context->is_resp3);
    if (decision == NULL || !take_limits(decision, &asked, context)) {
        if (decision != NULL)
            decision_free(decision);
        build_error(error, SLICE("ERR out of memory"));
        return NULL;
    }
    decision_keep(decision, &asked.ask, prefix);
    (void)zone_get(decision->ask.rule.zone);
    if (quota_takes_permit(&decision->ask) && !make_token(decision)) {
        build_error(error, SLICE("ERR the system has no random numbers"));
        decision_free(decision);
        return NULL;
    }
    if (quota_is_rated(&decision->ask))
        take_penalty(asked.limits[0], &decision->ask);
    decision->database = asked.ask.is_unprefixed ? context->database : 0;
    decision->failover_wait_ns = context->failover_wait_ns;
    if (decision->is_shadow)
        decision->ask.wait_ns = 0; /* a limit in shadow mode lets the call pass without waiting */
    return decision;
}

struct decision *decision_answered(struct quota *quota, struct slice reply, void *owner)
{
    struct decision *decision = calloc(1, sizeof *decision);
    if (decision == NULL)
        return NULL;
    init(decision, quota, owner, false);
    decision->is_done = true;
    build_raw(&decision->reply, reply);
    return decision;
}

struct decision *decision_part(struct decision *whole, struct slice key)
{
    struct decision *decision = calloc(1, sizeof *decision);
    if (decision == NULL)
        return NULL;
    init(decision, whole->quota, NULL, false);
    decision->ask = (struct decision_request){.rule.kind = whole->ask.rule.kind};
    decision->key = key;
    decision->n_keys = 1;
    decision->asked_ns = whole->asked_ns;
    decision->failover_wait_ns = whole->failover_wait_ns;
    decision->whole = whole;
    whole->n_open++;
    return decision;
}

void decision_free(struct decision *decision)
{
    if (decision->alarms != NULL)
        alarms_release(decision->alarms, 1);
    build_fini(&decision->reply);
    named_counters_put(decision->counters);
    zone_put(decision->ask.rule.zone);
    for (unsigned i = 0; i < decision->n_parts; i++) {
        named_counters_put(decision->parts[i].counters);
        zone_put(decision->asks[i].rule.zone);
    }
    free(decision->parts);
    free(decision->asks);
    free(decision);
}

void decision_drop(struct decision *decision)
{
    struct decision *whole = decision->whole;
    decision_free(decision);
    if (whole != NULL && --whole->n_open == 0)
        decision_free(whole);
}

/* ---- keys with another algorithm's state ---- */

bool decision_is_outdated(const struct decision *decision, struct slice error)
{
    bool is_named = decision->counters != NULL || decision->ask.is_named;
    if (!is_named || decision->is_renewed || decision->owner == NULL ||
        !slice_begins(error, SLICE("-WRONGTYPE ")))
        return false;
    if (decision->is_waiting)
        return false; /* the state may belong to the limit's present algorithm */
    /* the state of the other keys is not known */
    return !decision->ask.is_peek || decision->n_parts == 0;
}

void decision_look_anew(const struct decision *decision, struct quota_outcome *outcome)
{
    int64_t numbers[QUOTA_NUMBERS_MAX] = {0};
    bool fits = true;
    for (unsigned i = 0; i < decision->ask.rule.n_rates; i++)
        fits = fits && decision->ask.cost <= decision->ask.rule.rates[i].limit;
    numbers[0] = !quota_is_funnel(decision->ask.rule.kind) && fits;
    quota_outcome(&decision->ask, numbers, 1, 0, outcome);
}

/* Turns the call into the deletion of the next key. */
static void take_next(struct decision *decision)
{
    uint8_t kind =
        decision->n_parts > 0 ? decision->asks[decision->n_renewed].rule.kind : decision->kind;
    if (decision->n_parts > 0)
        decision->key = decision->asks[decision->n_renewed].key;
    decision->ask.max = quota_letter(kind);
    decision->n_renewed++;
}

void decision_renew(struct decision *decision)
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

void decision_renew_next(struct decision *decision, bool is_deleted)
{
    const struct named_counters *counters = decision->n_parts > 0
                                                ? decision->parts[decision->n_renewed - 1].counters
                                                : decision->counters;
    if (is_deleted)
        log_at(LOG_SITE_NAMED_LIMIT, LOG_WARN,
               "limit %s: a key had the state of another algorithm and starts empty",
               counters->name);
    if (decision->n_renewed < decision->n_parts)
        take_next(decision);
    else
        decision_renew_end(decision);
}

void decision_renew_end(struct decision *decision)
{
    decision->ask.rule.kind = decision->kind;
    decision->ask.n_parts = decision->n_parts;
    decision->n_keys = decision->n_parts;
    decision->key = decision->all_keys;
}

/* ---- counting ---- */

static void count_for(const struct decision *decision, const struct quota_settings *settings,
                      uint64_t now_ns, struct named_counters *counters, struct slice key,
                      bool is_limited, bool is_shadow)
{
    if (counters == NULL)
        return;
    uint64_t ns = decision->arrived_ns > 0 && now_ns > decision->arrived_ns
                      ? now_ns - decision->arrived_ns
                      : 0;
    enum named_result result = decision->is_failed ? NAMED_ERROR
                               : !is_limited       ? NAMED_PASSED
                               : is_shadow         ? NAMED_SHADOWED
                                                   : NAMED_LIMITED;
    named_counters_add(counters, result, ns);
    if (is_limited && !decision->is_failed)
        top_add(settings->limited, TOP_REFUSED, slice_str(counters->name), key,
                hash_bytes(settings->key, key), 1, now_ns);
}

void decision_count(const struct decision *decision, const struct quota_settings *settings,
                    uint64_t now_ns)
{
    if (decision->ask.is_peek)
        return;
    count_for(decision, settings, now_ns, decision->counters, decision->key, decision->is_limited,
              decision->is_shadow);
    for (unsigned i = 0; i < decision->n_parts; i++) {
        const struct decision_request *part = &decision->asks[i];
        bool is_refused = (decision->refusing >> i & 1) != 0;
        if (!part->is_peek)
            count_for(decision, settings, now_ns, decision->parts[i].counters, part->key,
                      is_refused, part->is_shadow);
    }
}
