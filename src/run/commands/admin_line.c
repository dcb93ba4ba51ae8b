#include "run/commands/admin_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/rate.h"

#define TEXT_ROOM 1024
#define WHY_ROOM 256
#define NAMES_ROOM 256 /* for the names of all policies; longer lists are left out of the error */

char *admin_error(const char *format, ...)
{
    char text[TEXT_ROOM] = "ERR ";
    size_t len = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + len, sizeof text - len, format, args);
    va_end(args);
    return mem_strdup(text);
}

void log_admin_command(struct journal *journal, const struct admin_command *admin_command,
                       const char *kind, const char *format, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    journal_log(journal, LOG_INFO, kind, "%s%s%s", text, admin_command->by[0] ? ", by " : "",
                admin_command->by);
}

static struct slice policy_name(const void *arg, size_t i)
{
    return slice_str(policies_at(arg, i)->name);
}

char *admin_no_policy(const struct policies *policies, struct slice name)
{
    struct slice near = near_name(name, policies_count(policies), policy_name, policies);
    if (near.len > 0)
        return admin_error("no policy %.*s (did you mean %.*s?)", WHY_SLICE(name), WHY_SLICE(near));
    char all[NAMES_ROOM] = "";
    size_t n = policies_count(policies), len = 0;
    for (size_t i = 0; i < n && len < sizeof all; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", i > 0 ? ", " : "",
                                policies_at(policies, i)->name);
    if (n == 0 || len >= sizeof all)
        return admin_error("no policy %.*s%s", WHY_SLICE(name),
                           n == 0 ? ": there is none at all" : "");
    return admin_error("no policy %.*s: there %s %s", WHY_SLICE(name), n == 1 ? "is" : "are", all);
}

bool admin_command_is_one_line(const char *text)
{
    for (; text != NULL && *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

char *admin_end(const struct admin_command *admin_command, uint64_t now_ns, uint64_t *until_ns)
{
    char why[WHY_ROOM];
    uint64_t lives_ns;
    *until_ns = admin_command->until_ns;
    if (admin_command->lives == NULL)
        return NULL;
    if (!admin_command_is_one_line(admin_command->lives) ||
        !rate_parse_time(slice_str(admin_command->lives), &lives_ns, why, sizeof why))
        return admin_command_is_one_line(admin_command->lives) ? admin_error("EX: %s", why)
                                                               : admin_error("EX: invalid time");
    if (lives_ns == 0)
        return admin_error("EX: the time must be longer than 0");
    *until_ns = now_ns + lives_ns;
    return NULL;
}

const char *admin_print_end(const struct admin_command *admin_command, const char *before,
                            char out[ADMIN_END_ROOM])
{
    uint64_t now_ns = clock_ns();
    out[0] = '\0';
    if (admin_command->lives != NULL)
        snprintf(out, ADMIN_END_ROOM, "%s%.40s", before, admin_command->lives);
    else if (admin_command->until_ns > now_ns)
        snprintf(out, ADMIN_END_ROOM, "%s%" PRIu64 "s", before,
                 (admin_command->until_ns - now_ns + NS_PER_S - 1) / NS_PER_S);
    return out;
}

static bool is_limit(struct slice what)
{
    return !slice_eq_nocase(what, SLICE("match")) && !slice_eq_nocase(what, SLICE("admin"));
}

char *admin_line(const struct admin_command *admin_command, const struct policies *policies,
                 struct line_name *name)
{
    *name = (struct line_name){SECTION_POLICY, slice_str(admin_command->policy),
                               slice_str(admin_command->what)};
    if (!admin_command_is_one_line(admin_command->policy) ||
        !admin_command_is_one_line(admin_command->what) ||
        !admin_command_is_one_line(admin_command->expression))
        return admin_error("a configuration cannot contain control characters");
    const struct policy *policy = policies_find(policies, name->section);
    if (policy == NULL)
        return admin_no_policy(policies, name->section);
    if (!is_limit(name->key))
        return admin_error("%s is not a limit: change it in the file, then LIMIT RELOAD",
                           admin_command->what);
    name->section = slice_str(policy->name);
    return NULL;
}

/* Splits "sliding = 5/60s" or "sliding 5/60s". */
static void split_line(struct slice text, struct slice *key, struct slice *value)
{
    size_t len = 0;
    text = split_trim(text);
    while (len < text.len && text.at[len] != ' ' && text.at[len] != '\t' && text.at[len] != '=')
        len++;
    *key = slice_of(text.at, len);
    *value = split_trim(slice_of(text.at + len, text.len - len));
    if (value->len > 0 && value->at[0] == '=')
        *value = split_trim(slice_of(value->at + 1, value->len - 1));
}

char *admin_named(const struct admin_command *admin_command, const struct named *named)
{
    struct slice name = slice_str(admin_command->policy);
    if (!admin_command_is_one_line(admin_command->policy))
        return admin_error("a configuration cannot contain control characters");
    if (named_find(named, name) != NULL)
        return NULL;
    struct slice near = named_near(named, name);
    if (near.len > 0)
        return admin_error("no limit is named %s (did you mean %.*s?)", admin_command->policy,
                           WHY_SLICE(near));
    return admin_error("no limit is named %s", admin_command->policy);
}

char *admin_named_line(const struct admin_command *admin_command, const struct named *named,
                       struct line_name *name, struct slice *value)
{
    *name = (struct line_name){SECTION_LIMIT, slice_str(admin_command->policy), SLICE("")};
    char *error = admin_named(admin_command, named);
    if (error != NULL)
        return error;
    if (!admin_command_is_one_line(admin_command->expression))
        return admin_error("a configuration cannot contain control characters");
    split_line(slice_str(admin_command->expression), &name->key, value);
    return value->len > 0 ? NULL : admin_error("write a key and its value, like sliding = 5/60s");
}
