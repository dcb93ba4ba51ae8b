/* A warning must be provable from the file: wrong warnings teach people to ignore them. */
#include "run/config/config_lint.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/imply.h"
#include "run/config/config_build.h"
#include "run/config/config_terms.h"

#define PATTERNS_MOST 64 /* a new client is compared with that many patterns in some 2 us */
/* the longest request time-out that is a default of common client libraries */
#define PATIENCE_NS (5 * NS_PER_S)

/* ---- unix sockets ---- */

/*
 * True for folders that the system makes at its start, or the service manager at the start of weir.
 */
static bool is_made_later(struct slice folder)
{
    static const struct slice run = {"/run/", 5}, var_run = {"/var/run/", 9};
    return (folder.len > run.len && slice_eq(slice_of(folder.at, run.len), run)) ||
           (folder.len > var_run.len && slice_eq(slice_of(folder.at, var_run.len), var_run));
}

static bool check_folder(struct slice path, struct why why)
{
    char folder[PATH_MAX];
    struct stat status;
    size_t len = path.len;
    while (len > 0 && path.at[len - 1] != '/')
        len--;
    len -= len > 1; /* without the trailing slash */
    if (len == 0 || len >= sizeof folder)
        return true;
    memcpy(folder, path.at, len);
    folder[len] = '\0';
    if (stat(folder, &status) == 0)
        return S_ISDIR(status.st_mode) ||
               why_refuse(why, "%s is not a folder: choose another path", folder);
    if (errno == ENOTDIR)
        return why_refuse(why, "%s is not in a folder: choose another path", folder);
    if (errno != ENOENT || is_made_later(slice_of(folder, len)))
        return true;
    return why_refuse(why, "the folder %s does not exist: create it, or choose another path",
                      folder);
}

/*
 * True if weir could make its socket at the path. A socket left by an earlier process is replaced.
 */
static bool check_path(struct slice path, struct why why)
{
    char file[PATH_MAX];
    struct stat status;
    if (path.len >= sizeof file)
        return true;
    memcpy(file, path.at, path.len);
    file[path.len] = '\0';
    if (lstat(file, &status) != 0)
        return check_folder(path, why);
    if (S_ISDIR(status.st_mode))
        return why_refuse(why, "%s is a folder: name a file in it, which weir creates", file);
    return S_ISSOCK(status.st_mode) || S_ISLNK(status.st_mode) ||
           why_refuse(
               why,
               "%s exists and is not a socket, so weir does not replace it: choose another path",
               file);
}

static void check_entry(struct config_file *file, const struct entry *entry, struct slice path)
{
    char what[CONFIG_WHY_ROOM];
    if (!check_path(path, (struct why){what, sizeof what}))
        entry_says(file, false, entry, what);
}

/*
 * Nothing is made or opened. A path that cannot be read is not judged: weir may run on another
 * machine, or as another user.
 */
static void check_sockets(const struct config *config, struct config_file *file)
{
    const struct entry *e = NULL;
    size_t n = 0; /* addresses are in the order of the file */
    while ((e = config_file_next(file, SECTION_WEIR, e)) != NULL) {
        struct slice rest = slice_str(e->value), item;
        bool is_listen = slice_eq_nocase(slice_str(e->key), SLICE("listen"));
        for (; is_listen && split_next(&rest, ',', &item) && n < config->n_listens; n++)
            if (config->listens[n].address.is_unix)
                check_entry(file, e, slice_str(config->listens[n].address.host));
    }
    while ((e = config_file_next(file, SECTION_ADMIN, e)) != NULL)
        if (config->admin_socket != NULL && slice_eq_nocase(slice_str(e->key), SLICE("socket")))
            check_entry(file, e, slice_str(config->admin_socket));
}

/* One policy and its configuration. */
struct subject_matter {
    struct config_file *file;
    const struct policies *policies;
    bool is_shadow;
    const struct policy *policy;
    const struct config *config;
};

/* ---- the lines of a policy ---- */

static const struct section *section_of(const struct subject_matter *s, const struct policy *policy)
{
    return config_file_section(s->file, SECTION_POLICY, slice_str(policy->name));
}

static const struct entry *config_lint_next_line(const struct subject_matter *s,
                                                 const struct entry *previous)
{
    return config_file_next_of(s->file, SECTION_POLICY, slice_str(s->policy->name), previous);
}

static bool config_lint_is_key(const struct entry *entry, const char *key)
{
    return slice_eq_nocase(slice_str(entry->key), slice_str(key));
}

/*
 * Finds the item with this number among the policy's lines of limits (or of `match`). Returns the
 * item's line; NULL: none.
 */
static const struct entry *find_item(const struct subject_matter *s, bool is_match, size_t index,
                                     struct slice *item)
{
    const struct entry *e = NULL;
    while ((e = config_lint_next_line(s, e)) != NULL) {
        struct slice rest = slice_str(e->value);
        bool is_wanted =
            is_match ? config_lint_is_key(e, "match") : config_is_limit_line(slice_str(e->key));
        while (is_wanted && split_next(&rest, ',', item))
            if (index-- == 0)
                return e;
    }
    return NULL;
}

/* ---- named limits ---- */

/*
 * Of N evenly spaced calls in a period, `approx` lets N - 1 pass. With a count of 100 or more the
 * loss is at most 1 % of the configured count.
 */
#define APPROX_LEAST 100

/* Returns COUNT of COUNT/PERIOD, which has been parsed before. */
static int64_t config_lint_count_of(struct slice rate)
{
    int64_t count = 0;
    const char *slash = memchr(rate.at, '/', rate.len);
    return slash != NULL && num_parse(slice_of(rate.at, (size_t)(slash - rate.at)), &count)
               ? count
               : INT64_MAX;
}

static void check_approx(struct config_file *file, const struct entry *e)
{
    char what[CONFIG_WHY_ROOM];
    struct slice rest = slice_str(e->value), item;
    while (split_next(&rest, ',', &item)) {
        int64_t count = config_lint_count_of(item);
        if (count >= APPROX_LEAST)
            continue;
        why_set(what, sizeof what,
                "approx rounds up: of evenly spaced calls %.*s lets only %" PRIi64 " of %" PRIi64
                " pass: use sliding, which is exact, or funnel",
                WHY_SLICE(item), count > 2 ? count - 1 : 1, count > 2 ? count : 2);
        entry_says(file, false, e, what);
    }
}

static void check_named(struct config_file *file, const struct named_limit *limit)
{
    const struct entry *e = NULL;
    while ((e = config_file_next_of(file, SECTION_LIMIT, slice_str(limit->name), e)) != NULL)
        if (config_lint_is_key(e, "approx"))
            check_approx(file, e);
}

/* ---- operators ---- */

static unsigned count_match_lines(const struct subject_matter *s, struct location *first)
{
    const struct entry *e = NULL;
    unsigned n = 0;
    while ((e = config_lint_next_line(s, e)) != NULL)
        if (config_lint_is_key(e, "match") && n++ == 0)
            *first = e->location;
    return n;
}

static void check_operators_terms(const struct subject_matter *s)
{
    char what[CONFIG_WHY_ROOM];
    for (size_t i = 0; i < s->policy->n_matches; i++) {
        const struct match *match = &s->policy->matches[i];
        struct slice item;
        const struct entry *e = find_item(s, true, i, &item);
        if (match_is_claimed(match))
            why_set(
                what, sizeof what,
                "clients choose %s themselves, so any client can become an operator: use user, tls or ip, or the "
                "socket of [admin]",
                match_kind(match));
        else if (match_is_open(match))
            why_set(what, sizeof what, "%.*s makes all clients operators: match only the operators",
                    WHY_SLICE(item));
        else
            continue;
        entry_says(s->file, false, e, what);
    }
}

static void check_operators(const struct subject_matter *s)
{
    char what[CONFIG_WHY_ROOM], location[LOCATION_ROOM];
    struct location first = {0};
    const struct entry *e = NULL;
    while ((e = config_lint_next_line(s, e)) != NULL && !config_lint_is_key(e, "admin"))
        ;
    if (!s->policy->is_admin || e == NULL)
        return;
    if (s->policy->n_matches == 0)
        entry_says(
            s->file, false, e,
            "all clients that no other policy binds become operators: give operators a policy of their own, "
            "with a match");
    if (s->policy->n_limits > 0)
        entry_says(
            s->file, false, e,
            "this policy limits its operators: is the line [policy NAME] of the operators missing above? Give "
            "them one without limits");
    unsigned n = count_match_lines(s, &first);
    if (n > 1) {
        why_set(
            what, sizeof what,
            "makes clients of any of %u match lines, from %s on, operators: is a [policy NAME] missing between "
            "them? Otherwise join the lines",
            n, location_print(s->file, first, e->location, location));
        entry_says(s->file, false, e, what);
    }
    check_operators_terms(s);
}

/* ---- names and terms ---- */

static void check_terms(const struct subject_matter *s)
{
    char what[CONFIG_WHY_ROOM];
    struct slice item;
    for (size_t i = 0; i < s->policy->n_matches; i++) {
        const struct entry *e = find_item(s, true, i, &item);
        if (e != NULL && (config_term_is_doubtful(item, (struct why){what, sizeof what}) ||
                          config_term_is_unbound(s->config, &s->policy->matches[i], item,
                                                 (struct why){what, sizeof what})))
            entry_says(s->file, false, e, what);
    }
}

/*
 * Warns of a name that clients act on: a refusal names its policy and its class, limit=free/write.
 */
static void check_name(struct config_file *file, const struct section *section)
{
    char what[CONFIG_WHY_ROOM];
    struct slice word = error_word_in(section->name);
    if (word.len == 0 || section != config_file_section(file, section->kind, section->name))
        return;
    why_set(
        what, sizeof what,
        "refusals contain this name, and client libraries act on %.*s in an error: choose another name",
        WHY_SLICE(word));
    section_says(file, false, section, what);
}

static void check_names(struct config_file *file)
{
    for (size_t i = 0; i < file->n_sections; i++)
        if (file->sections[i].kind == SECTION_POLICY || file->sections[i].kind == SECTION_CLASS)
            check_name(file, &file->sections[i]);
}

/* ---- policies without effect ---- */

static void check_reach(const struct subject_matter *s)
{
    char what[CONFIG_WHY_ROOM];
    const struct policy *before = policies_covering(s->policies, s->policy);
    if (before == NULL)
        return;
    const struct section *section = section_of(s, s->policy);
    char location[LOCATION_ROOM];
    location_print(s->file, section_of(s, before)->location, section->location, location);
    if (s->policy->n_matches == 0)
        why_set(what, sizeof what, "binds no client: [policy %s] in %s binds all of them before",
                before->name, location);
    else
        why_set(
            what, sizeof what,
            "binds no client: [policy %s] in %s binds all of them before: move this policy up, or remove it",
            before->name, location);
    section_says(s->file, false, section, what);
}

/*
 * Warns of a policy without limits. In shadow mode the policy shows which limits its subjects need.
 */
static void check_emptiness(const struct subject_matter *s)
{
    const struct entry *e = NULL;
    if (s->is_shadow)
        return;
    while ((e = config_lint_next_line(s, e)) != NULL)
        if (!config_lint_is_key(e, "match"))
            return;
    const struct section *section = section_of(s, s->policy);
    section_says(
        s->file, false, section,
        "has no limits, so its clients are unlimited: add limits, or write priority = normal if that is "
        "intended");
}

/* ---- connections of the default policy ---- */

static bool is_by_user(const struct policy *policy)
{
    for (size_t i = 0; i < policy->n_matches; i++)
        if (strcmp(match_kind(&policy->matches[i]), "user") == 0)
            return true;
    return false;
}

/*
 * True if `low` lets fewer units pass at once than `high`, or fewer in the long run. Both rates
 * have the same unit and scope.
 */
static bool is_below(const struct rate *low, const struct rate *high)
{
    if (low->burst < high->burst)
        return true;
    return low->period_ns > 0 && high->period_ns > 0 &&
           (double)low->count / (double)low->period_ns <
               (double)high->count / (double)high->period_ns;
}

/*
 * Returns a limit of a policy by user that admits more connections than `low` of the default
 * policy; NULL: none.
 */
static const struct limit *find_above(const struct subject_matter *s, const struct limit *low,
                                      const struct policy **owner)
{
    for (size_t i = 0; i < policies_count(s->policies); i++) {
        *owner = policies_at(s->policies, i);
        for (size_t j = 0; j < (*owner)->n_limits && is_by_user(*owner); j++) {
            const struct limit *high = &(*owner)->limits[j];
            if (high->unit == low->unit && high->scope == low->scope &&
                is_below(&low->rate, &high->rate))
                return high;
        }
    }
    return NULL;
}

static void check_connections(const struct subject_matter *s, unsigned index)
{
    char what[CONFIG_WHY_ROOM], location[LOCATION_ROOM];
    const struct limit *limit = &s->policy->limits[index];
    bool is_of_connections = limit->unit == UNIT_CONNECTIONS || limit->unit == UNIT_CONNECTS;
    if (!is_of_connections || s->policy->n_matches > 0 || limit->action == OVER_SHADOW)
        return;
    const struct policy *owner;
    const struct limit *above = find_above(s, limit, &owner);
    if (above == NULL)
        return;
    struct slice item, other;
    const struct entry *e = find_item(s, false, index, &item);
    const struct subject_matter of_user = {s->file, s->policies, s->is_shadow, owner, s->config};
    const struct entry *at = find_item(&of_user, false, (size_t)(above - owner->limits), &other);
    why_set(
        what, sizeof what,
        "%.*s is less than the %.*s of [policy %s] in %s: its users' connections count here if they send a "
        "command before the login, or log in after 10 s",
        WHY_SLICE(item), WHY_SLICE(other), owner->name,
        location_print(s->file, at->location, e->location, location));
    entry_says(s->file, false, e, what);
}

#define BURST_LEAST 1024 /* bytes: a smaller burst of bytes is hardly intended */

/* Warns of "10mb/s burst 40": the burst has no unit, while the rate has one. */
static void check_burst(const struct subject_matter *s, const struct entry *e, struct slice item)
{
    char what[CONFIG_WHY_ROOM];
    struct slice rest = item, rate, word, burst;
    int64_t count = 0;
    split_word(&rest, &rate);
    const char *slash = memchr(rate.at, '/', rate.len);
    if (slash == NULL || slash - rate.at < 3 || ascii_lower(slash[-1]) != 'b' ||
        !split_word(&rest, &word) || !slice_eq_nocase(word, SLICE("burst")) ||
        !split_word(&rest, &burst))
        return;
    if (num_parse(burst, &count) && count < BURST_LEAST) {
        why_set(what, sizeof what, "a burst of %.*s is that many bytes: write burst %.*s%.2s",
                WHY_SLICE(burst), WHY_SLICE(burst), slash - 2);
        entry_says(s->file, false, e, what);
    }
}

static void check_limit(const struct subject_matter *s, unsigned index)
{
    char what[CONFIG_WHY_ROOM], location[LOCATION_ROOM];
    struct slice item, other;
    const struct entry *e = find_item(s, false, index, &item);
    const struct limit *limit = &s->policy->limits[index];
    const struct limit *stricter = policy_stricter(s->policy, index);
    if (limit->action == OVER_DELAY && limit->delay_ns > PATIENCE_NS) {
        why_set(what, sizeof what,
                "commands may wait %" PRIu64
                " s, but clients time out earlier (Jedis after 2 s, go-redis after 3 s, "
                "others after 5 s): delay less, or refuse",
                limit->delay_ns / NS_PER_S);
        entry_says(s->file, false, e, what);
    }
    if (limit->unit == UNIT_BYTES_IN || limit->unit == UNIT_BYTES_OUT)
        check_burst(s, e, item);
    if (stricter == NULL)
        return;
    const struct entry *at = find_item(s, false, (size_t)(stricter - s->policy->limits), &other);
    why_set(what, sizeof what,
            "%.*s never binds, because %.*s = %.*s in %s is stricter: remove one of them",
            WHY_SLICE(item), WHY_SLICE(slice_str(at->key)), WHY_SLICE(other),
            location_print(s->file, at->location, e->location, location));
    entry_says(s->file, false, e, what);
}

static void check_patterns(const struct policies *policies, struct config_file *file)
{
    char what[CONFIG_WHY_ROOM];
    size_t n = policies_patterns(policies);
    if (n <= PATTERNS_MOST)
        return;
    why_set(
        what, sizeof what,
        "the match lines have %zu patterns that weir must compare one by one, and more than %d are slow: write "
        "whole texts (user:ann), prefixes (user:free-*) or networks",
        n, PATTERNS_MOST);
    config_file_say(file, false, (struct location){0}, NULL, NULL, what);
}

/* ---- destinations of passwords ---- */

/* Warns of an upstream that may direct weir, and the passwords it logs in with, to any address. */
static void check_sources(const struct config *config, struct config_file *file)
{
    bool is_known =
        config->sources.addresses[0].is_tls && !config->upstream_tls_settings.is_unverified;
    const struct entry *upstream = config_file_entry(file, SECTION_WEIR, "upstream");
    if (!sources_lead_on(&config->sources) || is_known ||
        !networks_are_none(&config->upstream_allow))
        return;
    entry_says(
        file, false, upstream,
        "weir sends passwords to any address that names, sentinels or servers announce: write tls: before the "
        "addresses, with upstream-tls-ca-file, or upstream-allow = NETWORK");
}

void config_lint(const struct config *config, struct config_file *file)
{
    for (size_t i = 0; i < named_count(config->rules.named); i++)
        check_named(file, named_at(config->rules.named, i));
    struct subject_matter s = {.file = file,
                               .policies = config->rules.policies,
                               .is_shadow = config->is_shadow,
                               .config = config};
    check_names(file);
    for (size_t i = 0; i < policies_count(s.policies); i++) {
        s.policy = policies_at(s.policies, i);
        check_operators(&s);
        check_terms(&s);
        check_reach(&s);
        check_emptiness(&s);
        for (unsigned j = 0; j < s.policy->n_limits; j++) {
            check_limit(&s, j);
            check_connections(&s, j);
        }
    }
    check_patterns(s.policies, file);
    check_sockets(config, file);
    check_sources(config, file);
}
