#include "run/commands/admin_unsaved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/why.h"
#include "limit/policy/named_subject.h"
#include "limit/policy/rate.h"
#include "quota/decision_request.h"
#include "run/commands/admin_line.h"

#define WHY_ROOM 512
#define ENDED_NAMED 16 /* ends logged one by one at a time; further ends are logged as a number */

/* ---- overrides: words ---- */

static struct slice admin_key_key_of(const struct admin_command *admin_command)
{
    return slice_of(admin_command->key, admin_command->key_len);
}

static char *check_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.at[i] < ' ' || key.at[i] == 0x7f)
            return admin_error("a command cannot contain control characters");
    return key.len <= QUOTA_KEY_MAX
               ? NULL
               : admin_error("the key is too long: at most %d bytes", QUOTA_KEY_MAX);
}

/*
 * Reads the rates of a line, which must be of the limit's own algorithm. Returns NULL, or an error
 * (heap).
 */
static char *read_rates(const struct named_limit *limit, const struct line_name *line,
                        struct slice value, struct quota_rule *rule)
{
    char why[WHY_ROOM];
    const char *algorithm = quota_algorithm(limit->rule.kind)->name;
    *rule = (struct quota_rule){0};
    if (named_is_setting(line->key))
        return admin_error("[limit %s] %.*s: a single key takes only rates: write %s = 5/60s",
                           limit->name, WHY_SLICE(line->key), algorithm);
    if (!quota_limit_parse(line->key, value, rule, why, sizeof why))
        return admin_error("[limit %s] %.*s: %s", limit->name, WHY_SLICE(line->key), why);
    if (rule->kind != limit->rule.kind)
        return admin_error(
            "[limit %s] has the algorithm %s, also for single keys: write %s = 5/60s", limit->name,
            algorithm, algorithm);
    if (value.len > OVERRIDE_RATES_MAX)
        return admin_error("the rates are too long: at most %d bytes", OVERRIDE_RATES_MAX);
    return NULL;
}

/* ---- overrides: admin commands ---- */

static size_t count_all(const struct named *named, uint64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < named_count(named); i++)
        n += shared_set_count_living(named_at(named, i)->overrides, now_ns);
    return n;
}

char *admin_key_set(const struct admin_command *admin_command, const struct named *named,
                    uint64_t now_ns, struct journal *journal, struct named **next)
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
        return admin_error("%d keys have rates of their own, the maximum: UNSET some, or use EX",
                           OVERRIDES_MAX);
    one.rates = value;
    log_admin_command(
        journal, admin_command, "set", "[limit %s] %s = %.*s for %.*s%s (before: %.*s)",
        limit->name, quota_algorithm(limit->rule.kind)->name, (int)value.len, value.at,
        override_shown(one.key), one.key.at, admin_print_end(admin_command, ", ends in ", end),
        before != NULL ? (int)before->rates.len : 4, before != NULL ? before->rates.at : "none");
    *next = named_copy(named);
    named_override(*next, line.section, overrides_with(limit->overrides, &one, now_ns));
    return NULL;
}

char *admin_key_unset(const struct admin_command *admin_command, const struct named *named,
                      uint64_t now_ns, struct journal *journal, struct named **next)
{
    struct slice key = admin_key_key_of(admin_command);
    char *error = admin_named(admin_command, named);
    if (error != NULL || (error = check_key(key)) != NULL)
        return error;
    const struct named_limit *limit = named_find(named, slice_str(admin_command->policy));
    const struct override *before = overrides_find(limit->overrides, key, now_ns);
    if (before == NULL)
        return admin_error("limit %s has no rates for the key %.*s", limit->name,
                           override_shown(key), key.at);
    log_admin_command(journal, admin_command, "unset",
                      "[limit %s] %s for %.*s removed (before: %.*s)", limit->name,
                      quota_algorithm(limit->rule.kind)->name, override_shown(key), key.at,
                      (int)before->rates.len, before->rates.at);
    *next = named_copy(named);
    named_override(*next, slice_str(limit->name), overrides_without(limit->overrides, key, now_ns));
    return NULL;
}

/* ---- overrides: differences to the file ---- */

static void add_difference(struct differences *d, const struct named_limit *limit,
                           const struct override *one, uint64_t now_ns)
{
    char end[32] = "";
    if (one->until_ns > 0)
        snprintf(end, sizeof end, " ex %" PRIu64 "s", (one->until_ns - now_ns) / NS_PER_S + 1);
    char *section = mem_print("limit %s", limit->name);
    for (char *c = section; *c; c++)
        *c = ascii_lower(*c);
    differences_add(
        d, (struct difference){section,
                               mem_print("%s for %.*s", quota_algorithm(limit->rule.kind)->name,
                                         (int)one->key.len, one->key.at),
                               mem_print("%.*s%s", (int)one->rates.len, one->rates.at, end),
                               mem_strndup("", 0)});
}

void admin_key_differences(const struct named *named, uint64_t now_ns,
                           struct differences *differences)
{
    for (size_t i = 0; i < named_count(named); i++) {
        const struct named_limit *limit = named_at(named, i);
        for (size_t j = 0; j < shared_set_count(limit->overrides); j++)
            if (!override_is_over(overrides_at(limit->overrides, j), now_ns))
                add_difference(differences, limit, overrides_at(limit->overrides, j), now_ns);
    }
}

/* ---- blocks ---- */

static struct slice subject_of(const struct admin_command *admin_command)
{
    return slice_of(admin_command->key, admin_command->key_len);
}

static struct slice reason_of(const struct admin_command *admin_command)
{
    return admin_command->expression != NULL ? slice_str(admin_command->expression) : SLICE("");
}

/* ---- blocks: admin commands ---- */

char *admin_block_next(const struct admin_command *admin_command, const struct identity *identity,
                       const struct shared_set *blocks, uint64_t now_ns, struct shared_set **next)
{
    char why[WHY_ROOM];
    struct named_subject named;
    struct block one = {.subject = subject_of(admin_command), .reason = reason_of(admin_command)};
    char *error = admin_end(admin_command, now_ns, &one.until_ns);
    if (error != NULL)
        return error;
    if (!named_subject_read(&named, identity, one.subject, why, sizeof why))
        return admin_error("%s", why);
    if (!admin_command_is_one_line(admin_command->expression))
        return admin_error("a reason cannot contain control characters");
    if (one.reason.len > BLOCK_REASON_MAX)
        return admin_error("the reason is too long: at most %d bytes", BLOCK_REASON_MAX);
    if (blocks_find(blocks, one.subject) == NULL && shared_set_count(blocks) >= BLOCKS_MAX)
        return admin_error("%d subjects are blocked, the maximum: unblock some, or use EX",
                           BLOCKS_MAX);
    *next = blocks_with(blocks, &one);
    return NULL;
}

static char *unblock(const struct admin_command *admin_command, const struct shared_set *blocks,
                     struct shared_set **next)
{
    struct slice subject = subject_of(admin_command);
    if (blocks_find(blocks, subject) == NULL)
        return admin_error("%.*s is not blocked", WHY_SLICE(subject));
    *next = shared_set_without(blocks, subject);
    return NULL;
}

/* ---- blocks: log lines ---- */

static void log_block(const struct admin_command *admin_command, struct journal *journal)
{
    struct slice subject = subject_of(admin_command), reason = reason_of(admin_command);
    char end[ADMIN_END_ROOM];
    if (admin_command->kind == ADMIN_UNBLOCK)
        log_admin_command(journal, admin_command, "unblock", "%.*s is no longer blocked",
                          WHY_SLICE(subject));
    else
        log_admin_command(journal, admin_command, "block", "%.*s is blocked%s%s%.*s%s",
                          WHY_SLICE(subject), admin_print_end(admin_command, " for ", end),
                          reason.len > 0 ? " (" : "", (int)reason.len, reason.at,
                          reason.len > 0 ? ")" : "");
}

static void log_ended(const struct shared_set *blocks, uint64_t now_ns, struct journal *journal)
{
    size_t ended = 0;
    for (size_t i = 0; i < shared_set_count(blocks); i++) {
        const struct block *one = blocks_at(blocks, i);
        if (block_is_over(one, now_ns) && ++ended <= ENDED_NAMED)
            journal_log(journal, LOG_INFO, "unblock", "%.*s is no longer blocked: its time is over",
                        WHY_SLICE(one->subject));
    }
    if (ended > ENDED_NAMED)
        journal_log(journal, LOG_INFO, "unblock",
                    "%zu more subjects are no longer blocked: the time of their blocks "
                    "is over",
                    ended - ENDED_NAMED);
}

/* Installs the blocks; takes over `next`. Returns NULL, or an error (heap). */
static char *admin_block_use(struct live_rules *live, struct shared_set *next)
{
    if (live_rules_set_blocks(live, next))
        return NULL;
    shared_set_put(next);
    return admin_error("weir has had too many different limits since its start: restart weir");
}

char *admin_block(const struct admin_command *admin_command, struct live_rules *live,
                  uint64_t now_ns)
{
    struct shared_set *next;
    char *error =
        admin_command->kind == ADMIN_UNBLOCK
            ? unblock(admin_command, live->blocks, &next)
            : admin_block_next(admin_command, &live->rules->identity, live->blocks, now_ns, &next);
    if (error == NULL)
        error = admin_block_use(live, next);
    if (error == NULL)
        log_block(admin_command, live->journal);
    return error;
}

void admin_blocks_end(struct live_rules *live, uint64_t now_ns)
{
    uint64_t next_ns = shared_set_next_end(live->blocks);
    if (next_ns == 0 || next_ns > now_ns)
        return;
    log_ended(live->blocks, now_ns, live->journal);
    free(admin_block_use(live, shared_set_living(live->blocks, false, now_ns)));
}

static char *admin_block_text_of(const struct block *one, uint64_t now_ns)
{
    char end[32] = "";
    if (one->until_ns > 0)
        snprintf(end, sizeof end, " ex %" PRIu64 "s",
                 one->until_ns > now_ns ? (one->until_ns - now_ns) / NS_PER_S + 1 : 0);
    return mem_print("blocked%s%s%.*s", end, one->reason.len > 0 ? " reason " : "",
                     (int)one->reason.len, one->reason.at);
}

void admin_block_differences(const struct shared_set *blocks, uint64_t now_ns,
                             struct differences *d)
{
    for (size_t i = 0; i < shared_set_count(blocks); i++) {
        const struct block *one = blocks_at(blocks, i);
        differences_add(d,
                        (struct difference){mem_strndup("block", 5),
                                            mem_strndup(one->subject.at, one->subject.len),
                                            admin_block_text_of(one, now_ns), mem_strndup("", 0)});
    }
}
