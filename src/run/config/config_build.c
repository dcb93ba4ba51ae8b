/*
 * The whole file is read before any value is interpreted. Classes can be used above their
 * definition, and all errors are reported at once.
 */
#include "run/config/config_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/policy.h"
#include "run/config/config_check.h"
#include "run/config/config_hints.h"
#include "run/config/config_keys.h"

/* ---- trying a single line, for hints ---- */

static bool is_accepted_by_policy(const struct command_table *table, struct slice key,
                                  struct slice value)
{
    char unused[CONFIG_WHY_ROOM];
    struct policies *policies = policies_new(classes_new());
    struct policy *policy = policies_add(policies, SLICE("any"), unused, sizeof unused);
    bool is_good = policy != NULL && (slice_eq_nocase(key, SLICE("match"))
                                          ? policy_add_match(policy, value, unused, sizeof unused)
                                          : policy_add_limits(policies, policy, table, key, value,
                                                              unused, sizeof unused));
    policies_put(policies);
    return is_good;
}

/* hint_check.is_accepted; `table` is a struct command_table. */
static bool line_is_accepted(const void *table, enum hint_location location, struct slice key,
                             struct slice value)
{
    char unused[CONFIG_WHY_ROOM];
    const struct config_key *own =
        config_key_find(location == HINT_IN_ADMIN ? SECTION_ADMIN : SECTION_WEIR, key);
    if (location == HINT_IN_POLICY || own == NULL)
        return is_accepted_by_policy(table, key, value);
    struct config *config = mem_zalloc(1, sizeof *config);
    config->rules.policies = policies_new(classes_new());
    config->rules.named = named_new();
    bool is_good =
        value.len > 0 && own->set(&(struct setting){own, config, value, {unused, sizeof unused}});
    config_free(config);
    return is_good;
}

struct loading {
    struct config_file *file;
    struct config *config;
    struct classes *classes; /* owned by config->rules.policies */
    const struct command_table *table;
    enum config_part part;
    struct hint_check check;
};

/* ---- [weir] and [admin] ---- */

/* Returns the name of key i if it may be suggested for this section; else "". */
static struct slice key_name(const void *arg, size_t i)
{
    const enum section_kind *section = arg;
    const struct config_key *key = config_key_at(i);
    return key->section == *section ? slice_str(key->name) : SLICE("");
}

static bool config_build_is_wanted(const struct loading *l, const struct config_key *key)
{
    return l->part == CONFIG_WHOLE || (!key->needs_restart && !key->names_file);
}

/* Returns the value as in the file, with its variables unexpanded. */
static struct slice as_written(const struct entry *entry)
{
    return slice_str(entry->raw != NULL ? entry->raw : entry->value);
}

static enum hint_location config_build_place_of(enum section_kind section)
{
    return section == SECTION_ADMIN ? HINT_IN_ADMIN : HINT_IN_WEIR;
}

static void say_unknown_key(struct loading *l, enum section_kind section, const struct entry *entry)
{
    char why[CONFIG_WHY_ROOM], unused[CONFIG_WHY_ROOM];
    struct slice name = slice_str(entry->key), value = as_written(entry);
    struct slice near = near_name(name, config_keys_count(), key_name, &section);
    bool is_of_policy =
        section == SECTION_WEIR && (unit_find(name) != UNIT_COMMANDS ||
                                    class_find(l->classes, name, unused, sizeof unused) != NULL);
    if (config_hint_name(config_build_place_of(section), &l->check, name, value,
                         (struct why){why, sizeof why}))
        ;
    else if (is_of_policy)
        snprintf(
            why, sizeof why,
            "unknown key: limits belong in a policy: write [policy default], and %.*s = %.*s below it",
            WHY_SLICE(name), WHY_SLICE(value));
    else
        unknown_name(why, sizeof why, "key", near);
    entry_error(l->file, entry, why);
}

/* Returns the cell for the first entry with this key, at the key's index in the table. */
static const struct entry **config_build_first_of(const struct entry **firsts,
                                                  const struct config_key *key)
{
    return &firsts[key - config_key_at(0)];
}

static void config_build_set_key(struct loading *l, enum section_kind section,
                                 const struct entry *entry, const struct entry **firsts)
{
    char why[CONFIG_WHY_ROOM] = "";
    struct slice name = slice_str(entry->key), value = slice_str(entry->value);
    const struct config_key *key = config_key_find(section, name);
    if (key == NULL) {
        say_unknown_key(l, section, entry);
        return;
    }
    const struct entry **first = config_build_first_of(firsts, key);
    if (*first != NULL && !key->is_list) {
        char location[LOCATION_ROOM];
        snprintf(why, sizeof why, "given twice: the first is in %s",
                 location_print(l->file, (*first)->location, entry->location, location));
        entry_error(l->file, entry, why);
        return;
    }
    if (*first == NULL)
        *first = entry;
    if (!config_build_is_wanted(l, key))
        return;
    bool is_good = value.len > 0
                       ? key->set(&(struct setting){key, l->config, value, {why, sizeof why}})
                       : why_set(why, sizeof why, "a value is missing");
    bool has_quotes =
        config_hint_quotes(name, as_written(entry), is_good, (struct why){why, sizeof why});
    if (!is_good && !has_quotes)
        (void)config_hint_comment(config_build_place_of(section), &l->check, name,
                                  as_written(entry), (struct why){why, sizeof why});
    if (why[0] != '\0')
        entry_says(l->file, !is_good, entry, why);
}

static void set_default(struct config *config, const struct config_key *key)
{
    char why[CONFIG_WHY_ROOM] = "";
    const struct setting setting = {key, config, slice_str(key->initial), {why, sizeof why}};
    if (!key->set(&setting) || why[0] != '\0')
        abort(); /* the table itself is wrong */
}

static bool wants_proxies(const struct config *config)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (config->listens[i].has_proxy_header)
            return true;
    return false;
}

/* Renames keys that have a new name since older versions, and warns of each. */
static void rename_old_keys(struct loading *l)
{
    char why[CONFIG_WHY_ROOM];
    for (size_t i = 0; i < l->file->n_entries; i++) {
        struct entry *entry = &l->file->entries[i];
        enum section_kind section = l->file->sections[entry->section].kind;
        const char *name = config_key_new_name(section, slice_str(entry->key));
        if (name == NULL)
            continue;
        struct slice value = as_written(entry);
        snprintf(why, sizeof why, "the key has a new name: write %s = %.*s", name,
                 WHY_SLICE(value));
        entry_says(l->file, false, entry, why);
        free(entry->key);
        entry->key = mem_strdup(name);
    }
}

static void load_keys(struct loading *l)
{
    size_t n = config_keys_count();
    const struct entry **firsts = mem_zalloc(n, sizeof *firsts);
    const struct entry *e = NULL;
    while ((e = config_file_next(l->file, SECTION_WEIR, e)) != NULL)
        config_build_set_key(l, SECTION_WEIR, e, firsts);
    while ((e = config_file_next(l->file, SECTION_ADMIN, e)) != NULL)
        config_build_set_key(l, SECTION_ADMIN, e, firsts);
    for (size_t i = 0; i < n; i++)
        if (firsts[i] == NULL && config_key_at(i)->initial != NULL &&
            config_build_is_wanted(l, config_key_at(i)))
            set_default(l->config, config_key_at(i));
    const struct entry *user =
        *config_build_first_of(firsts, config_key_find(SECTION_WEIR, SLICE("upstream-user")));
    const struct entry *password = *config_build_first_of(
        firsts, config_key_find(SECTION_WEIR, SLICE("upstream-password-file")));
    const struct entry *listen =
        *config_build_first_of(firsts, config_key_find(SECTION_WEIR, SLICE("listen")));
    const struct entry *guise =
        *config_build_first_of(firsts, config_key_find(SECTION_WEIR, SLICE("clients-as")));
    if (user != NULL && password == NULL)
        entry_error(l->file, user, "needs upstream-password-file");
    if (listen != NULL && networks_are_none(&l->config->rules.proxies) && wants_proxies(l->config))
        entry_error(l->file, listen,
                    "proxy needs proxy-protocol-from: set it to the addresses of your proxies");
    if (guise != NULL && l->config->clients_as_upstream && password == NULL)
        entry_error(l->file, guise, "upstream needs upstream-password-file");
    free(firsts);
}

/*
 * Returns the first line above `entry` with the same key, in sections of the same name; NULL: none.
 */
static const struct entry *line_before(const struct loading *l, const struct entry *entry)
{
    const struct section *section = &l->file->sections[entry->section];
    const struct entry *e = NULL;
    while ((e = config_file_next_of(l->file, section->kind, section->name, e)) != NULL &&
           e != entry)
        if (slice_eq_nocase(slice_str(e->key), slice_str(entry->key)))
            return e;
    return NULL;
}

/* ---- [class NAME] ---- */

static struct slice commands_name(const void *arg, size_t i)
{
    (void)arg;
    (void)i;
    return SLICE("commands");
}

/* Returns the first class named in `terms` that is not defined yet; NULL: none. */
static const struct section *awaited(const struct loading *l, const struct section *section,
                                     struct slice terms)
{
    struct slice term;
    while (split_next(&terms, ',', &term)) {
        if (term.len > 0 && term.at[0] == '-')
            term = split_trim(slice_of(term.at + 1, term.len - 1));
        const struct section *other = config_file_section(l->file, SECTION_CLASS, term);
        if (other != NULL && other != section && !other->is_done)
            return other;
    }
    return NULL;
}

/* Returns the first line of the class that names a class not defined yet. */
static const struct entry *awaiting_entry(const struct loading *l, const struct section *section,
                                          const struct section **other)
{
    const struct entry *e = NULL;
    while ((e = config_file_next_of(l->file, SECTION_CLASS, section->name, e)) != NULL) {
        *other = awaited(l, section, slice_str(e->value));
        if (*other != NULL)
            return e;
    }
    return NULL;
}

static void define_line(struct loading *l, const struct section *section, const struct entry *entry)
{
    char why[CONFIG_WHY_ROOM];
    struct slice key = slice_str(entry->key);
    if (!slice_eq_nocase(key, SLICE("commands")))
        entry_error(l->file, entry,
                    unknown_name(why, sizeof why, "key", near_name(key, 1, commands_name, NULL)));
    else if (!class_define(l->classes, section->name, slice_str(entry->value), why, sizeof why))
        entry_error(l->file, entry, why);
}

static void define_class(struct loading *l, struct section *section)
{
    const struct entry *e = config_file_next_of(l->file, SECTION_CLASS, section->name, NULL);
    if (e == NULL)
        section_error(l->file, section, "the class is empty: give it commands");
    for (; e != NULL; e = config_file_next_of(l->file, SECTION_CLASS, section->name, e))
        define_line(l, section, e);
    section->is_done = true;
}

/*
 * Returns the next class that is not defined yet. With `is_ready` the class names only defined
 * classes. NULL: none.
 */
static struct section *next_class(const struct loading *l, bool is_ready)
{
    const struct section *other;
    struct section *section = NULL;
    while ((section = config_file_next_section(l->file, SECTION_CLASS, section)) != NULL)
        if (!section->is_done && !(is_ready && awaiting_entry(l, section, &other) != NULL))
            return section;
    return NULL;
}

static void load_classes(struct loading *l)
{
    char why[CONFIG_WHY_ROOM];
    struct section *section;
    while ((section = next_class(l, true)) != NULL)
        define_class(l, section);
    while ((section = next_class(l, false)) != NULL) {
        const struct section *other = NULL;
        const struct entry *entry = awaiting_entry(l, section, &other);
        if (entry != NULL) {
            snprintf(why, sizeof why, "the class %.*s contains itself through other classes",
                     (int)other->name.len, other->name.at);
            entry_error(l->file, entry, why);
        }
        section->is_done = true;
    }
}

/* Returns the line of the class that names this command or category; NULL: none. */
static const struct entry *naming_entry(const struct loading *l, struct slice class,
                                        struct slice name)
{
    const struct entry *e = NULL;
    while ((e = config_file_next_of(l->file, SECTION_CLASS, class, e)) != NULL) {
        struct slice terms = slice_str(e->value), term;
        while (split_next(&terms, ',', &term))
            if (term.len >= name.len &&
                slice_eq_nocase(slice_of(term.at + term.len - name.len, name.len), name))
                return e;
    }
    return NULL;
}

/* Warns where the class is written: in its own section, or in policies that spell it out. */
static void warn_unknown(void *arg, struct slice class, struct slice unknown, struct slice near)
{
    struct loading *l = arg;
    char what[CONFIG_WHY_ROOM];
    if (slice_eq(unknown, SLICE("*")))
        snprintf(what, sizeof what, "* is not a command: write all for all commands");
    else if (near.len > 0 && !slice_eq_nocase(near, class)) /* no class may contain itself */
        snprintf(what, sizeof what, "%.*s is not a known command (did you mean %.*s?)",
                 (int)unknown.len, unknown.at, (int)near.len, near.at);
    else
        snprintf(what, sizeof what, "%.*s is not a known command", (int)unknown.len, unknown.at);
    const struct entry *e = naming_entry(l, class, unknown);
    if (e != NULL)
        entry_says(l->file, false, e, what);
    if (config_file_section(l->file, SECTION_CLASS, class) != NULL)
        return;
    char nothing[CONFIG_WHY_ROOM + 32];
    snprintf(nothing, sizeof nothing, "%s: the line denies nothing", what);
    while ((e = config_file_next(l->file, SECTION_POLICY, e)) != NULL)
        if (slice_eq_nocase(slice_str(e->key), class))
            entry_says(l->file, false, e,
                       slice_eq_nocase(slice_str(e->value), SLICE("deny")) ? nothing : what);
}

/* ---- [policy NAME] ---- */

static bool set_admin(struct policy *policy, struct slice value, char *why, size_t why_size)
{
    policy->is_admin = slice_eq_nocase(value, SLICE("yes"));
    return policy->is_admin || slice_eq_nocase(value, SLICE("no")) ||
           why_set(why, why_size, "\"%.*s\" is neither yes nor no", WHY_SLICE(value));
}

static bool set_weight(struct policy *policy, struct slice value, char *why, size_t why_size)
{
    int64_t weight;
    if (!num_parse(value, &weight) || weight < 1 || weight > POLICY_WEIGHT_MAX)
        return why_set(why, why_size, "\"%.*s\" is not a number from 1 to %d", WHY_SLICE(value),
                       POLICY_WEIGHT_MAX);
    policy->weight = (uint32_t)weight;
    return true;
}

static bool set_priority(struct policy *policy, struct slice value, char *why, size_t why_size)
{
    policy->is_low = slice_eq_nocase(value, SLICE("low"));
    return policy->is_low || slice_eq_nocase(value, SLICE("normal")) ||
           why_set(why, why_size, "\"%.*s\" is neither normal nor low", WHY_SLICE(value));
}

/* Keys of a policy that are not limits. */
static const struct trait {
    struct slice key;
    bool (*set)(struct policy *policy, struct slice value, char *why, size_t why_size);
} traits[] = {
    {{"admin", 5}, set_admin},
    {{"weight", 6}, set_weight},
    {{"priority", 8}, set_priority},
};

static const struct trait *find_trait(struct slice key)
{
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++)
        if (slice_eq_nocase(key, traits[i].key))
            return &traits[i];
    return NULL;
}

bool config_is_limit_line(struct slice key)
{
    return find_trait(key) == NULL && !slice_eq_nocase(key, SLICE("match"));
}

/* Replaces `why` by a better message, if the meaning of the line can be guessed. */
static void hint_policy_line(const struct loading *l, const struct entry *entry, struct why why)
{
    char unused[CONFIG_WHY_ROOM];
    struct slice key = slice_str(entry->key), value = as_written(entry);
    bool is_class = !config_is_limit_line(key) || unit_find(key) != UNIT_COMMANDS ||
                    class_find(l->classes, key, unused, sizeof unused) != NULL;
    if (!is_class && (config_hint_spelling(&l->check, key, value, why) ||
                      config_hint_name(HINT_IN_POLICY, &l->check, key, value, why)))
        return;
    if (!config_hint_quotes(key, value, false, why))
        (void)config_hint_comment(HINT_IN_POLICY, &l->check, key, value, why);
}

static void load_policy_line(struct loading *l, struct policy *policy, const struct entry *entry)
{
    char why[CONFIG_WHY_ROOM] = "", location[LOCATION_ROOM];
    struct slice key = slice_str(entry->key), value = slice_str(entry->value);
    bool is_default = slice_eq_nocase(slice_str(policy->name), SLICE("default"));
    const struct entry *first = find_trait(key) != NULL ? line_before(l, entry) : NULL;
    bool is_good = false;
    if (value.len == 0)
        snprintf(why, sizeof why, "a value is missing");
    else if (first != NULL)
        snprintf(why, sizeof why, "given twice: the first is in %s",
                 location_print(l->file, first->location, entry->location, location));
    else if (find_trait(key) != NULL)
        is_good = find_trait(key)->set(policy, value, why, sizeof why);
    else if (config_is_limit_line(key))
        is_good = policy_add_limits(l->config->rules.policies, policy, l->table, key, value, why,
                                    sizeof why);
    else if (is_default)
        snprintf(
            why, sizeof why,
            "the policy default binds all clients that no other policy binds: leave match out");
    else
        is_good = policy_add_match(policy, value, why, sizeof why);
    if (!is_good && value.len > 0)
        hint_policy_line(l, entry, (struct why){why, sizeof why});
    if (!is_good)
        entry_error(l->file, entry, why);
}

static void load_policy(struct loading *l, const struct section *section)
{
    char why[CONFIG_WHY_ROOM];
    struct policy *policy = policies_add(l->config->rules.policies, section->name, why, sizeof why);
    if (policy == NULL) {
        section_error(l->file, section, why);
        return;
    }
    bool has_match = slice_eq_nocase(section->name, SLICE("default"));
    const struct entry *e = NULL;
    while ((e = config_file_next_of(l->file, SECTION_POLICY, section->name, e)) != NULL) {
        has_match = has_match || slice_eq_nocase(slice_str(e->key), SLICE("match"));
        load_policy_line(l, policy, e);
    }
    if (!has_match)
        section_error(l->file, section,
                      "the policy binds no client: give it a match (only the policy default has "
                      "none)");
}

static void load_policies(struct loading *l)
{
    const struct section *section = NULL;
    while ((section = config_file_next_section(l->file, SECTION_POLICY, section)) != NULL)
        load_policy(l, section);
    policies_set_shadow(l->config->rules.policies, l->config->is_shadow);
    policies_bind(l->config->rules.policies, l->table);
}

/* ---- [cost] ---- */

static void load_costs(struct loading *l)
{
    char why[CONFIG_WHY_ROOM], location[LOCATION_ROOM];
    const struct entry *e = NULL;
    while ((e = config_file_next(l->file, SECTION_COST, e)) != NULL) {
        const struct entry *first = line_before(l, e);
        if (!policies_add_cost(l->config->rules.policies, l->table, slice_str(e->key),
                               slice_str(e->value), why, sizeof why)) {
            entry_error(l->file, e, why);
        } else if (first != NULL) {
            snprintf(why, sizeof why, "given twice: the line in %s has no effect",
                     location_print(l->file, first->location, e->location, location));
            entry_says(l->file, false, e, why);
        }
    }
}

/* ---- [limit NAME] ---- */

/* Checks that each limit has an algorithm, in any of its sections. */
static void want_rates(struct loading *l)
{
    char why[CONFIG_WHY_ROOM];
    const struct section *section = NULL;
    while ((section = config_file_next_section(l->file, SECTION_LIMIT, section)) != NULL) {
        const struct named_limit *limit = named_find(l->config->rules.named, section->name);
        if (limit != NULL && !named_is_whole(limit, why, sizeof why))
            section_error(l->file, section, why);
    }
}

/*
 * Checks that no limit is named after another limit with a colon and more text. The keys of a limit
 * begin with its name and a colon: the two limits would share keys.
 */
static void want_keys_apart(struct loading *l)
{
    char why[CONFIG_WHY_ROOM];
    const struct section *section = NULL;
    while ((section = config_file_next_section(l->file, SECTION_LIMIT, section)) != NULL)
        for (size_t n = 1; n < section->name.len; n++) {
            struct slice other = slice_of(section->name.at, n);
            if (section->name.at[n] != ':' || named_find(l->config->rules.named, other) == NULL)
                continue;
            snprintf(
                why, sizeof why,
                "the limit would share keys with [limit %.*s]: keys there begin with \"%.*s:\": rename "
                "it",
                (int)n, other.at, (int)n, other.at);
            section_error(l->file, section, why);
        }
}

static void load_named(struct loading *l)
{
    char why[CONFIG_WHY_ROOM];
    const struct entry *e = NULL;
    for (size_t i = 0; i < l->file->n_sections; i++) {
        const struct section *section = &l->file->sections[i];
        if (section->kind == SECTION_LIMIT &&
            config_file_next_of(l->file, SECTION_LIMIT, section->name, NULL) == NULL)
            section_error(l->file, section,
                          "the limit is empty: give it a rate, like sliding = 5/60s");
    }
    unsigned n_errors = l->file->n_errors;
    while ((e = config_file_next(l->file, SECTION_LIMIT, e)) != NULL) {
        struct slice name = l->file->sections[e->section].name;
        if (!named_add(l->config->rules.named, name, slice_str(e->key), slice_str(e->value), why,
                       sizeof why))
            entry_error(l->file, e, why);
    }
    if (l->file->n_errors == n_errors) {
        want_rates(l);
        want_keys_apart(l);
    }
}

/* ---- the whole ---- */

static void config_build_load(struct loading *l)
{
    for (size_t i = 0; i < l->file->n_sections; i++)
        l->file->sections[i].is_done = false;
    rename_old_keys(l);
    load_keys(l);
    if (l->part == CONFIG_WHOLE && l->file->n_errors == 0)
        config_check(l->config, l->file);
    if (l->part == CONFIG_WHOLE && l->file->n_errors == 0)
        config_tls_load(l->config, l->file);
    load_classes(l);
    load_costs(l);
    load_policies(l);
    load_named(l);
    classes_check(l->classes, l->table, warn_unknown, l);
}

struct config *config_build(struct config_file *file, const struct command_table *table,
                            enum config_part part)
{
    struct loading l = {
        .file = file, .table = table, .part = part, .check = {line_is_accepted, table}};
    l.config = mem_zalloc(1, sizeof *l.config);
    l.config->is_default = file->path == NULL;
    l.classes = classes_new();
    l.config->rules.policies = policies_new(l.classes);
    l.config->rules.named = named_new();
    config_build_load(&l);
    if (file->n_errors == 0)
        return l.config;
    config_free(l.config);
    return NULL;
}

struct config *config_read(struct config_file *file, const struct command_table *table)
{
    if (file->path != NULL)
        config_file_read(file);
    return config_build(file, table, CONFIG_WHOLE);
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n_listens; i++)
        address_fini(&config->listens[i].address);
    free(config->listens);
    free(config->name);
    sources_fini(&config->sources);
    address_map_fini(&config->upstream_map);
    free(config->admin_socket);
    free(config->admin_hosts);
    free(config->log_path);
    address_fini(&config->admin_listen);
    address_fini(&config->cluster_announce);
    free(config->upstream_user);
    free(config->sentinel_user);
    free(config->sentinel_password_file);
    tls_settings_fini(&config->tls_settings);
    tls_settings_fini(&config->upstream_tls_settings);
    rules_fini(&config->rules);
    free(config);
}
