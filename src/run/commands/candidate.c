#include "run/commands/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/command/class.h"
#include "limit/policy/imply.h"
#include "limit/policy/named_subject.h"
#include "quota/algorithm.h"
#include "run/commands/admin_line.h"
#include "run/config/config_build.h"
#include "run/config/config_edit.h"

#define WHY_ROOM 512

/* ---- checks that an admin command would have an effect ---- */

static void on_unknown(void *arg, struct slice class, struct slice unknown, struct slice near)
{
    char **error = arg;
    (void)class;
    if (*error == NULL && near.len > 0)
        *error = admin_error("%.*s is not a known command (did you mean %.*s?)", WHY_SLICE(unknown),
                             WHY_SLICE(near));
    else if (*error == NULL)
        *error = admin_error(
            "%.*s is not a known command: for a module that is not loaded yet, write the line into the file, "
            "then LIMIT RELOAD",
            WHY_SLICE(unknown));
}

/*
 * Returns NULL, or an error (heap) if the line names a command or category that `table` does not
 * know. The check looks up the class among the built-in classes only, and passes over the classes
 * that the operator has defined.
 */
static char *check_class(const struct line_name *name, const struct command_table *table)
{
    char why[WHY_ROOM];
    char *error = NULL;
    struct classes *spelled = classes_new();
    if (class_find(spelled, name->key, why, sizeof why) != NULL)
        classes_check(spelled, table, on_unknown, &error);
    classes_free(spelled);
    return error;
}

/*
 * Returns NULL, or an error (heap): the line cannot be set for one subject or for a time, or not
 * this policy binds the subject.
 */
static char *check_line_subject(const struct admin_command *admin_command,
                                const struct line_name *name, const struct identity *identity,
                                const struct policies *policies)
{
    char why[WHY_ROOM];
    struct named_subject named;
    const struct policy *other;
    if (!config_is_limit_line(name->key))
        return admin_error(
            "%s is not a limit: only limits can be SET for one subject or for a time",
            admin_command->what);
    const struct policy *policy = policies_find(policies, name->section);
    if (policy == NULL || admin_command->key == NULL ||
        !named_subject_read(&named, identity, slice_str(admin_command->key), why, sizeof why) ||
        !named.is_whole)
        return NULL; /* a wrong name is reported elsewhere */
    struct slice kind, rest = slice_str(admin_command->key);
    split_next(&rest, ':', &kind);
    if (!policies_bind_elsewhere(policies, policy, &named.facts, kind, &other))
        return NULL;
    if (other == NULL)
        return admin_error("no policy binds %s, not even %s", admin_command->key, policy->name);
    return admin_error("%s is bound by policy %s, not by %s: LIMIT SET %s ...", admin_command->key,
                       other->name, policy->name, other->name);
}

struct candidate candidate_new(const struct config_file *running, const struct set_lines *lines)
{
    struct candidate candidate = {.lines = set_lines_copy(lines)};
    config_file_copy(&candidate.file, running);
    return candidate;
}

void candidate_fini(struct candidate *candidate)
{
    config_file_fini(&candidate->file);
    set_lines_fini(&candidate->lines);
    *candidate = (struct candidate){0};
}

/* ---- lines of policies ---- */

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

/* Returns the line's value for all subjects of the policy; heap. NULL: no such line. */
static char *value_for_all(const struct candidate *candidate, const struct line_name *name)
{
    const struct set_line *line = set_lines_find(&candidate->lines, name->section, name->key, NULL);
    return line != NULL ? mem_strdup(line->expression) : config_file_value(&candidate->file, name);
}

/*
 * Returns NULL, or an error (heap) if the line could have no effect. A line that replaces another
 * may name an unknown command.
 */
static char *check_effect(const struct candidate *candidate,
                          const struct admin_command *admin_command, const struct line_name *name,
                          const struct live_rules *live)
{
    if (admin_command->is_handed_over)
        return NULL;
    char *there = value_for_all(candidate, name);
    char *error = there != NULL ? NULL : check_class(name, live->commands);
    free(there);
    if (error == NULL && admin_command_is_special(admin_command))
        error =
            check_line_subject(admin_command, name, &live->rules->identity, live->rules->policies);
    return error;
}

/*
 * Sets or removes a line for one subject, or for a time. Returns NULL and sets *told, or returns an
 * error (heap).
 */
static char *change_lines(struct candidate *candidate, const struct admin_command *admin_command,
                          const struct line_name *name, const struct identity *identity,
                          char **told)
{
    const struct set_line *known =
        set_lines_find(&candidate->lines, name->section, name->key, admin_command->key);
    char *before = known != NULL                ? mem_strdup(known->expression)
                   : admin_command->key == NULL ? config_file_value(&candidate->file, name)
                                                : NULL;
    char *error =
        admin_command->kind == ADMIN_SET
            ? admin_lines_set(admin_command, name, identity, &candidate->lines, clock_ns())
            : admin_lines_unset(admin_command, name, &candidate->lines);
    if (error == NULL) {
        char *now = value_for_all(candidate, name);
        *told = admin_lines_told(admin_command, name, before, now);
        free(now);
    }
    free(before);
    return error;
}

/*
 * Replaces the lines of that name in the file by `value`, and drops the line that was set for a
 * time.
 */
static void candidate_replace(struct candidate *candidate, const struct line_name *name,
                              const char *value)
{
    config_file_replace(&candidate->file, name, value);
    set_lines_drop(&candidate->lines, name->section, name->key, NULL);
}

static char *candidate_set(struct candidate *candidate, const struct admin_command *admin_command,
                           const struct live_rules *live, char **told)
{
    struct line_name name;
    char *error = admin_line(admin_command, live->rules->policies, &name);
    if (error == NULL)
        error = check_effect(candidate, admin_command, &name, live);
    if (error != NULL)
        return error;
    if (admin_command_is_special(admin_command))
        return change_lines(candidate, admin_command, &name, &live->rules->identity, told);
    struct slice value = split_trim(slice_str(admin_command->expression));
    char *expression = mem_strndup(value.at, value.len);
    char *before = config_file_value(&candidate->file, &name);
    candidate_replace(candidate, &name, expression);
    *told = mem_print("[policy %.*s] %s = %s (before: %s)", WHY_SLICE(name.section),
                      admin_command->what, expression, or_none(before));
    free(before);
    free(expression);
    return NULL;
}

static char *unset(struct candidate *candidate, const struct admin_command *admin_command,
                   const struct live_rules *live, char **told)
{
    struct line_name name;
    char *error = admin_line(admin_command, live->rules->policies, &name);
    if (error != NULL)
        return error;
    if (admin_command_is_special(admin_command) ||
        set_lines_find(&candidate->lines, name.section, name.key, NULL) != NULL)
        return change_lines(candidate, admin_command, &name, &live->rules->identity, told);
    char *before = config_file_value(&candidate->file, &name);
    if (before == NULL)
        return admin_error("policy %.*s has no limit %s", WHY_SLICE(name.section),
                           admin_command->what);
    candidate_replace(candidate, &name, NULL);
    *told = mem_print("[policy %.*s] %s removed (before: %s; now: none)", WHY_SLICE(name.section),
                      admin_command->what, before);
    free(before);
    return NULL;
}

/* ---- other lines ---- */

/*
 * Replaces a line of a named limit. A limit has one algorithm: lines of other algorithms are
 * removed.
 */
static void replace_named(struct config_file *file, const struct line_name *name, const char *value)
{
    struct line_name other = *name;
    for (uint8_t kind = 0; quota_named_kind(name->key) != QUOTA_KINDS && kind < QUOTA_KINDS;
         kind++) {
        other.key = slice_str(quota_algorithm(kind)->name);
        if (quota_algorithm(kind)->is_named && !slice_eq_nocase(other.key, name->key))
            config_file_replace(file, &other, NULL);
    }
    config_file_replace(file, name, value);
}

static char *set_limit(struct candidate *candidate, const struct admin_command *admin_command,
                       const struct live_rules *live, char **told)
{
    struct line_name name;
    struct slice value;
    char *error = admin_named_line(admin_command, live->rules->named, &name, &value);
    if (error != NULL)
        return error;
    char *text = mem_strndup(value.at, value.len);
    char *before = config_file_value(&candidate->file, &name);
    replace_named(&candidate->file, &name, text);
    *told = mem_print("[limit %s] %.*s = %s (before: %s)", admin_command->policy,
                      WHY_SLICE(name.key), text, or_none(before));
    free(before);
    free(text);
    return NULL;
}

static char *set_mode(struct candidate *candidate, const struct admin_command *admin_command,
                      const struct live_rules *live, char **told)
{
    const struct line_name name = {SECTION_WEIR, SLICE(""), SLICE("mode")};
    (void)live;
    if (!admin_command_is_one_line(admin_command->expression))
        return admin_error("a mode is enforce or shadow");
    config_file_replace(&candidate->file, &name, admin_command->expression);
    bool is_shadow =
        slice_eq_nocase(split_trim(slice_str(admin_command->expression)), SLICE("shadow"));
    *told = mem_print("mode = %s", is_shadow ? "shadow" : "enforce");
    return NULL;
}

/* ---- admin commands ---- */

static char *(*const kinds[])(struct candidate *candidate,
                              const struct admin_command *admin_command,
                              const struct live_rules *live, char **told) = {
    [ADMIN_SET] = candidate_set,
    [ADMIN_UNSET] = unset,
    [ADMIN_SET_LIMIT] = set_limit,
    [ADMIN_MODE] = set_mode,
};

bool candidate_is_for(const struct admin_command *admin_command)
{
    return admin_command->kind < sizeof kinds / sizeof kinds[0] &&
           kinds[admin_command->kind] != NULL;
}

char *candidate_change(struct candidate *candidate, const struct admin_command *admin_command,
                       const struct live_rules *live, char **told)
{
    return kinds[admin_command->kind](candidate, admin_command, live, told);
}
