/* Lines are few and rarely read, so every search is linear. */
#include "run/commands/set_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/named_subject.h"
#include "run/commands/admin_line.h"

#define WHY_ROOM 512

/* printf's format of a line: "write for user:ann", or "write". */
#define SHOWN "[policy %s] %s = %s%s%s"
#define SHOW(line)                                                                                 \
    (line)->policy, (line)->what, (line)->expression, (line)->subject != NULL ? " for " : "",      \
        (line)->subject != NULL ? (line)->subject : ""

/* ---- the list ---- */

static struct set_line copy_line(const struct set_line *line)
{
    return (struct set_line){mem_strdup(line->policy), mem_strdup(line->what),
                             mem_strdup(line->expression), mem_strdup(line->subject),
                             line->until_ns};
}

static void line_fini(struct set_line *line)
{
    free(line->policy);
    free(line->what);
    free(line->expression);
    free(line->subject);
}

struct set_lines set_lines_copy(const struct set_lines *lines)
{
    struct set_lines copy = {mem_zalloc(lines->n + 1, sizeof *copy.at), lines->n};
    for (size_t i = 0; i < lines->n; i++)
        copy.at[i] = copy_line(&lines->at[i]);
    return copy;
}

void set_lines_fini(struct set_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        line_fini(&lines->at[i]);
    free(lines->at);
    *lines = (struct set_lines){0};
}

static bool is_subject(const struct set_line *line, const char *subject)
{
    if (line->subject == NULL || subject == NULL)
        return line->subject == NULL && subject == NULL;
    return strcmp(line->subject, subject) == 0;
}

/* Returns the line's index; lines->n: there is none. */
static size_t set_lines_index_of(const struct set_lines *lines, struct slice policy,
                                 struct slice what, const char *subject)
{
    size_t i = 0;
    while (i < lines->n && !(slice_eq_nocase(policy, slice_str(lines->at[i].policy)) &&
                             slice_eq_nocase(what, slice_str(lines->at[i].what)) &&
                             is_subject(&lines->at[i], subject)))
        i++;
    return i;
}

const struct set_line *set_lines_find(const struct set_lines *lines, struct slice policy,
                                      struct slice what, const char *subject)
{
    size_t i = set_lines_index_of(lines, policy, what, subject);
    return i < lines->n ? &lines->at[i] : NULL;
}

static void set_lines_take_out(struct set_lines *lines, size_t i)
{
    line_fini(&lines->at[i]);
    memmove(lines->at + i, lines->at + i + 1, (lines->n - i - 1) * sizeof *lines->at);
    lines->n--;
}

bool set_lines_drop(struct set_lines *lines, struct slice policy, struct slice what,
                    const char *subject)
{
    size_t i = set_lines_index_of(lines, policy, what, subject);
    if (i == lines->n)
        return false;
    set_lines_take_out(lines, i);
    return true;
}

void set_lines_put(struct set_lines *lines, const struct set_line *line)
{
    set_lines_drop(lines, slice_str(line->policy), slice_str(line->what), line->subject);
    lines->at = mem_realloc(lines->at, lines->n + 1, sizeof *lines->at);
    lines->at[lines->n++] = copy_line(line);
}

/* ---- the end of lines ---- */

void set_lines_end(struct set_lines *lines, uint64_t now_ns, struct journal *journal)
{
    for (size_t i = 0; i < lines->n;) {
        const struct set_line *line = &lines->at[i];
        if (line->until_ns == 0 || line->until_ns > now_ns) {
            i++;
            continue;
        }
        journal_log(journal, LOG_INFO, "unset", SHOWN " has ended: its time is over", SHOW(line));
        set_lines_take_out(lines, i);
    }
}

void set_lines_keep_timed(struct set_lines *lines, struct journal *journal)
{
    for (size_t i = 0; i < lines->n;) {
        if (lines->at[i].until_ns > 0) {
            i++;
            continue;
        }
        journal_log(journal, LOG_WARN, "reload",
                    "dropped at the reload, because it was only SET: " SHOWN, SHOW(&lines->at[i]));
        set_lines_take_out(lines, i);
    }
}

uint64_t set_lines_next_end(const struct set_lines *lines)
{
    uint64_t first_ns = 0;
    for (size_t i = 0; i < lines->n; i++) {
        uint64_t until_ns = lines->at[i].until_ns;
        if (until_ns > 0 && (first_ns == 0 || until_ns < first_ns))
            first_ns = until_ns;
    }
    return first_ns;
}

/* ---- applying lines ---- */

static bool apply(const struct set_line *line, struct policies *policies,
                  const struct command_table *table, struct variants *variants, char *why)
{
    const struct line_span span = {line->until_ns, line->subject != NULL};
    const struct policy *known = policies_find(policies, slice_str(line->policy));
    if (known == NULL) {
        snprintf(why, WHY_ROOM, "there is no policy of that name");
        return false;
    }
    struct policy *policy = line->subject != NULL
                                ? variants_want(variants, slice_str(line->subject), known)
                                : policies_add(policies, slice_str(line->policy), why, WHY_ROOM);
    return policy != NULL && policy_replace_line(policies, policy, table, slice_str(line->what),
                                                 slice_str(line->expression), &span, why, WHY_ROOM);
}

/* Lines for all subjects come first: variants are made from the policies with these lines. */
char *set_lines_apply(struct set_lines *lines, struct policies *policies,
                      const struct command_table *table, struct journal *journal,
                      struct variants *variants)
{
    char why[WHY_ROOM];
    for (int own = 0; own < 2; own++)
        for (size_t i = 0; i < lines->n;) {
            const struct set_line *line = &lines->at[i];
            if ((line->subject != NULL) != own || apply(line, policies, table, variants, why)) {
                i++;
                continue;
            }
            if (journal == NULL)
                return mem_print("[policy %s] %s: %s", line->policy, line->what, why);
            journal_log(journal, LOG_WARN, "reload", "dropped: " SHOWN ": %s", SHOW(line), why);
            set_lines_take_out(lines, i);
        }
    return NULL;
}

/* ---- differences to the file ---- */

static char *running_text(const struct set_line *line, uint64_t now_ns)
{
    uint64_t left_ns = line->until_ns > now_ns ? line->until_ns - now_ns : 0;
    if (line->until_ns == 0)
        return mem_strdup(line->expression);
    return mem_print("%s ex %" PRIu64 "s", line->expression, (left_ns + NS_PER_S - 1) / NS_PER_S);
}

static void set_lines_add(struct differences *d, const struct set_line *line,
                          const struct config_file *file, uint64_t now_ns)
{
    const struct line_name name = {SECTION_POLICY, slice_str(line->policy), slice_str(line->what)};
    char *in_file = line->subject == NULL ? config_file_value(file, &name) : NULL;
    differences_add(d, (struct difference){
                           mem_print("policy %s", line->policy),
                           line->subject != NULL ? mem_print("%s for %s", line->what, line->subject)
                                                 : mem_strdup(line->what),
                           running_text(line, now_ns),
                           in_file != NULL ? in_file : mem_strdup(""),
                       });
}

/*
 * True if `d` has a row for the line's name, because a value without end was SET before; the row is
 * updated.
 */
static bool amend(struct differences *d, const struct set_line *line, uint64_t now_ns)
{
    for (size_t i = 0; line->subject == NULL && i < d->count; i++) {
        const struct line_name name = difference_line(&d->at[i]);
        if (name.kind != SECTION_POLICY ||
            !slice_eq_nocase(name.section, slice_str(line->policy)) ||
            !slice_eq_nocase(name.key, slice_str(line->what)))
            continue;
        free(d->at[i].running);
        d->at[i].running = running_text(line, now_ns);
        return true;
    }
    return false;
}

void set_lines_differences(const struct set_lines *lines, const struct config_file *file,
                           uint64_t now_ns, struct differences *d)
{
    for (size_t i = 0; i < lines->n; i++)
        if (!amend(d, &lines->at[i], now_ns))
            set_lines_add(d, &lines->at[i], file, now_ns);
}

/* ---- admin commands ---- */

#define WHY_ROOM 512

bool admin_command_is_special(const struct admin_command *admin_command)
{
    return admin_command->key != NULL || admin_command->lives != NULL ||
           admin_command->until_ns > 0;
}

static char *check_subject(const struct admin_command *admin_command,
                           const struct identity *identity)
{
    char why[WHY_ROOM];
    struct named_subject named;
    if (admin_command->key == NULL ||
        named_subject_read(&named, identity, slice_str(admin_command->key), why, sizeof why))
        return NULL;
    return admin_error("%s", why);
}

char *admin_lines_set(const struct admin_command *admin_command, const struct line_name *name,
                      const struct identity *identity, struct set_lines *lines, uint64_t now_ns)
{
    struct slice expression = split_trim(slice_str(admin_command->expression));
    struct set_line line = {.what = admin_command->what, .subject = admin_command->key};
    char *error = admin_end(admin_command, now_ns, &line.until_ns);
    if (error == NULL)
        error = check_subject(admin_command, identity);
    if (error != NULL)
        return error;
    if (set_lines_find(lines, name->section, name->key, admin_command->key) == NULL &&
        lines->n >= SET_LINES_MAX)
        return admin_error(
            "%d limits are set for one subject or for a time, the maximum: UNSET some, or use EX",
            SET_LINES_MAX);
    line.policy = mem_strndup(name->section.at, name->section.len);
    line.expression = mem_strndup(expression.at, expression.len);
    set_lines_put(lines, &line);
    free(line.policy);
    free(line.expression);
    return NULL;
}

char *admin_lines_unset(const struct admin_command *admin_command, const struct line_name *name,
                        struct set_lines *lines)
{
    if (!set_lines_drop(lines, name->section, name->key, admin_command->key))
        return admin_error("policy %.*s has no limit %s for %s", WHY_SLICE(name->section),
                           admin_command->what, admin_command->key);
    return NULL;
}

char *admin_lines_told(const struct admin_command *admin_command, const struct line_name *name,
                       const char *before, const char *now)
{
    const char *for_word = admin_command->key != NULL ? " for " : "",
               *subject = admin_command->key != NULL ? admin_command->key : "";
    char end[ADMIN_END_ROOM];
    before = before != NULL ? before : "none";
    if (admin_command->kind == ADMIN_UNSET)
        return mem_print("[policy %.*s] %s%s%s removed (before: %s; now: %s)",
                         WHY_SLICE(name->section), admin_command->what, for_word, subject, before,
                         now != NULL ? now : "none");
    return mem_print("[policy %.*s] %s = %s%s%s%s (before: %s)", WHY_SLICE(name->section),
                     admin_command->what, admin_command->expression, for_word, subject,
                     admin_print_end(admin_command, ", ends in ", end), before);
}
