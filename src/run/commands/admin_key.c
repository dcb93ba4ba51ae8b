#include "run/commands/admin_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/why.h"
#include "limit/policy/rate.h"
#include "quota/decision_request.h"
#include "run/commands/admin_line.h"

#define WHY_ROOM 256
/* dropped overrides logged one by one at a time; further ones are logged as a number */
#define NAMED_DROPPED 16
#define SHOWN 200 /* bytes of a key in a log line */

/* ---- words ---- */

static struct slice admin_key_key_of(const struct admin_command *admin_command)
{
    return slice_of(admin_command->key, admin_command->key_len);
}

static int admin_key_shown(struct slice key)
{
    return (int)(key.len < SHOWN ? key.len : SHOWN);
}

static char *check_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.at[i] < ' ' || key.at[i] == 0x7f)
            return admin_error("a command cannot contain control characters");
    return key.len <= QUOTA_KEY_MAX ? NULL : admin_error("the key is too long: at most %d bytes", QUOTA_KEY_MAX);
}

/*
 * Reads the rates of a line, which must be of the limit's own algorithm. Returns NULL, or an error
 * (heap).
 */
static char *read_rates(const struct named_limit *limit, const struct line_name *line, struct slice value,
                        struct quota_rule *rule)
{
    char why[WHY_ROOM];
    const char *algorithm = quota_algorithm(limit->rule.kind)->name;
    *rule = (struct quota_rule){0};
    if (named_is_setting(line->key))
        return admin_error("[limit %s] %.*s: a single key takes only rates: write %s = 5/60s", limit->name,
                           WHY_SLICE(line->key), algorithm);
    if (!quota_limit_parse(line->key, value, rule, why, sizeof why))
        return admin_error("[limit %s] %.*s: %s", limit->name, WHY_SLICE(line->key), why);
    if (rule->kind != limit->rule.kind)
        return admin_error("[limit %s] has the algorithm %s, also for single keys: write %s = 5/60s", limit->name,
                           algorithm, algorithm);
    if (value.len > OVERRIDE_RATES_MAX)
        return admin_error("the rates are too long: at most %d bytes", OVERRIDE_RATES_MAX);
    return NULL;
}

/* ---- admin commands ---- */

static size_t count_all(const struct named *named, uint64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < named_count(named); i++)
        n += shared_set_count_living(named_at(named, i)->overrides, now_ns);
    return n;
}

char *admin_key_set(const struct admin_command *admin_command, const struct named *named, uint64_t now_ns,
                    struct journal *journal, struct named **next)
{
    struct line_name line;
    struct slice value;
    struct override one = {.key = admin_key_key_of(admin_command)};
    char end[ADMIN_END_ROOM];
    char *error = admin_named_line(admin_command, named, &line, &value);
    const struct named_limit *limit = error != NULL ? NULL : named_find(named, line.section);
    if (error != NULL || (error = check_key(one.key)) != NULL ||
        (error = admin_end(admin_command, now_ns, &one.until_ns)) != NULL ||
        (error = read_rates(limit, &line, value, &one.rule)) != NULL)
        return error;
    const struct override *before = overrides_find(limit->overrides, one.key, now_ns);
    if (before == NULL && count_all(named, now_ns) >= OVERRIDES_MAX)
        return admin_error("%d keys have rates of their own, the maximum: UNSET some, or use EX", OVERRIDES_MAX);
    one.rates = value;
    log_admin_command(journal, admin_command, "set", "[limit %s] %s = %.*s for %.*s%s (before: %.*s)", limit->name,
                      quota_algorithm(limit->rule.kind)->name, (int)value.len, value.at, admin_key_shown(one.key),
                      one.key.at, admin_print_end(admin_command, ", ends in ", end),
                      before != NULL ? (int)before->rates.len : 4, before != NULL ? before->rates.at : "none");
    *next = named_copy(named);
    named_override(*next, line.section, overrides_with(limit->overrides, &one, now_ns));
    return NULL;
}

char *admin_key_unset(const struct admin_command *admin_command, const struct named *named, uint64_t now_ns,
                      struct journal *journal, struct named **next)
{
    struct slice key = admin_key_key_of(admin_command);
    char *error = admin_named(admin_command, named);
    if (error != NULL || (error = check_key(key)) != NULL)
        return error;
    const struct named_limit *limit = named_find(named, slice_str(admin_command->policy));
    const struct override *before = overrides_find(limit->overrides, key, now_ns);
    if (before == NULL)
        return admin_error("limit %s has no rates for the key %.*s", limit->name, admin_key_shown(key), key.at);
    log_admin_command(journal, admin_command, "unset", "[limit %s] %s for %.*s removed (before: %.*s)", limit->name,
                      quota_algorithm(limit->rule.kind)->name, admin_key_shown(key), key.at, (int)before->rates.len,
                      before->rates.at);
    *next = named_copy(named);
    named_override(*next, slice_str(limit->name), overrides_without(limit->overrides, key, now_ns));
    return NULL;
}

/* ---- changes of the configuration ---- */

/* Logs the overrides of `before` that are not in `kept`. */
static void name_dropped(const struct named_limit *before, const struct shared_set *kept, uint64_t now_ns,
                         struct journal *journal)
{
    size_t dropped = 0;
    for (size_t i = 0; kept != before->overrides && i < shared_set_count(before->overrides); i++) {
        const struct override *one = overrides_at(before->overrides, i);
        if (override_is_over(one, now_ns) || overrides_find(kept, one->key, now_ns) != NULL ||
            ++dropped > NAMED_DROPPED)
            continue;
        journal_log(journal, LOG_WARN, "reload",
                    "dropped at the reload, because it was only SET: [limit %s] %s = "
                    "%.*s for %.*s",
                    before->name, quota_algorithm(before->rule.kind)->name, WHY_SLICE(one->rates),
                    admin_key_shown(one->key), one->key.at);
    }
    if (dropped > NAMED_DROPPED)
        journal_log(journal, LOG_WARN, "reload",
                    "dropped at the reload, because they were only SET: rates of %zu more keys of [limit %s]",
                    dropped - NAMED_DROPPED, before->name);
}

void admin_key_inherit(struct named *fresh, const struct named *before, bool is_reload, uint64_t now_ns,
                       struct journal *journal)
{
    for (size_t i = 0; i < named_count(before); i++) {
        const struct named_limit *was = named_at(before, i);
        const struct named_limit *is = named_find(fresh, slice_str(was->name));
        if (was->overrides == NULL)
            continue;
        bool stays = is != NULL && is->rule.kind == was->rule.kind;
        struct shared_set *kept = !stays      ? NULL
                                  : is_reload ? shared_set_living(was->overrides, true, now_ns)
                                              : shared_set_get(was->overrides);
        name_dropped(was, kept, now_ns, journal);
        if (stays)
            named_override(fresh, slice_str(was->name), kept);
    }
}

/* ---- differences to the file ---- */

static void add_difference(struct differences *d, const struct named_limit *limit, const struct override *one,
                           uint64_t now_ns)
{
    char end[32] = "";
    if (one->until_ns > 0)
        snprintf(end, sizeof end, " ex %" PRIu64 "s", (one->until_ns - now_ns) / NS_PER_S + 1);
    char *section = mem_print("limit %s", limit->name);
    for (char *c = section; *c; c++)
        *c = ascii_lower(*c);
    differences_add(d, (struct difference){section,
                                           mem_print("%s for %.*s", quota_algorithm(limit->rule.kind)->name,
                                                     (int)one->key.len, one->key.at),
                                           mem_print("%.*s%s", (int)one->rates.len, one->rates.at, end),
                                           mem_strndup("", 0)});
}

void admin_key_differences(const struct named *named, uint64_t now_ns, struct differences *differences)
{
    for (size_t i = 0; i < named_count(named); i++) {
        const struct named_limit *limit = named_at(named, i);
        for (size_t j = 0; j < shared_set_count(limit->overrides); j++)
            if (!override_is_over(overrides_at(limit->overrides, j), now_ns))
                add_difference(differences, limit, overrides_at(limit->overrides, j), now_ns);
    }
}
