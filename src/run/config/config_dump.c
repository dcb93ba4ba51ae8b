/*
 * Text is written as in the file, in lines of allowed length. Limits are written from their parsed
 * form.
 */
#include "run/config/config_dump.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/slice.h"
#include "limit/policy/rate.h"
#include "run/config/config_edit.h"
#include "run/config/config_keys.h"
#include "run/config/inifile.h"

/* ---- lines ---- */

/* Returns the number of bytes that the text takes in a file: ${ is written $${. */
static size_t written_len(struct slice text)
{
    size_t len = text.len;
    for (size_t i = 0; i + 1 < text.len; i++)
        len += text.at[i] == '$' && text.at[i + 1] == '{';
    return len;
}

static void write_text(FILE *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '$' && i + 1 < text.len && text.at[i + 1] == '{')
            fputc('$', out);
        fputc(text.at[i], out);
    }
}

/*
 * True if the value can be written after "key = ". The value of a variable may not fit: it may look
 * like a comment, or be too long.
 */
static bool fits_line(struct slice key, struct slice value)
{
    for (size_t i = 0; i + 1 < value.len; i++)
        if (split_is_space(value.at[i]) && value.at[i + 1] == ';')
            return false;
    bool is_comment = value.len > 0 && value.at[0] == ';';
    return !is_comment && key.len + 3 + written_len(value) <= INIFILE_LINE_MAX;
}

static void write_line(FILE *out, struct slice key, struct slice value)
{
    fprintf(out, "%.*s = ", (int)key.len, key.at);
    write_text(out, value);
    fputc('\n', out);
}

/* Writes the items of a list, in as many lines as needed. */
static void write_list(FILE *out, struct slice key, struct slice value)
{
    size_t room = INIFILE_LINE_MAX - (key.len + 3), used = 0;
    struct slice item;
    while (split_next(&value, ',', &item)) {
        size_t len = written_len(item);
        if (used > 0 && used + 2 + len > room) {
            fputc('\n', out);
            used = 0;
        }
        if (used == 0)
            fprintf(out, "%.*s = ", (int)key.len, key.at);
        else
            fputs(", ", out);
        write_text(out, item);
        used += len + (used > 0 ? 2 : 0);
    }
    fputc('\n', out);
}

static bool items_fit(struct slice key, struct slice value)
{
    struct slice item;
    while (split_next(&value, ',', &item))
        if (!fits_line(key, item))
            return false;
    return true;
}

/* Writes one line of the file: with its variables expanded if that fits, else as written. */
static void write_entry(FILE *out, const struct entry *entry, bool is_list)
{
    struct slice key = slice_str(entry->key), value = slice_str(entry->value);
    if (entry->raw != NULL && !(is_list ? items_fit(key, value) : fits_line(key, value)))
        fprintf(out, "%s = %s\n", entry->key, entry->raw);
    else if (is_list)
        write_list(out, key, value);
    else
        write_line(out, key, value);
}

static void write_heading(FILE *out, enum section_kind kind, struct slice name)
{
    struct slice word = section_word(kind);
    fprintf(out, "\n[%.*s%s%.*s]\n", (int)word.len, word.at, name.len > 0 ? " " : "", (int)name.len,
            name.at);
}

/* ---- [weir] and [admin] ---- */

static void config_dump_write_keys(FILE *out, const struct config_file *file,
                                   enum section_kind kind)
{
    write_heading(out, kind, SLICE(""));
    for (size_t i = 0; i < config_keys_count(); i++) {
        const struct config_key *key = config_key_at(i);
        struct line_name line = {kind, SLICE(""), slice_str(key->name)};
        const struct entry *e = config_file_next_line(file, &line, NULL);
        /* included files are written in place */
        if (key->section != kind || strcmp(key->name, "include") == 0)
            continue;
        if (e == NULL && key->initial != NULL)
            write_line(out, line.key, slice_str(key->initial));
        for (; e != NULL; e = config_file_next_line(file, &line, e))
            write_entry(out, e, key->is_list);
    }
}

/* ---- sections of text ---- */

static void write_classes(FILE *out, const struct config_file *file)
{
    const struct section *section = NULL;
    while ((section = config_file_next_section(file, SECTION_CLASS, section)) != NULL) {
        const struct entry *e = NULL;
        write_heading(out, SECTION_CLASS, section->name);
        while ((e = config_file_next_of(file, SECTION_CLASS, section->name, e)) != NULL)
            write_entry(out, e, true);
    }
}

static void write_costs(FILE *out, const struct config_file *file)
{
    const struct entry *e = config_file_next(file, SECTION_COST, NULL);
    if (e != NULL)
        write_heading(out, SECTION_COST, SLICE(""));
    for (; e != NULL; e = config_file_next(file, SECTION_COST, e))
        write_entry(out, e, false);
}

static bool config_dump_has_line(const struct config_file *file, struct slice name, const char *key)
{
    const struct line_name line = {SECTION_LIMIT, name, slice_str(key)};
    return config_file_next_line(file, &line, NULL) != NULL;
}

static void config_dump_write_named(FILE *out, const struct config *config,
                                    const struct config_file *file)
{
    const struct section *section = NULL;
    while ((section = config_file_next_section(file, SECTION_LIMIT, section)) != NULL) {
        const struct entry *e = NULL;
        write_heading(out, SECTION_LIMIT, section->name);
        while ((e = config_file_next_of(file, SECTION_LIMIT, section->name, e)) != NULL)
            write_entry(out, e, quota_named_kind(slice_str(e->key)) != QUOTA_KINDS);
        const struct named_limit *limit = named_find(config->rules.named, section->name);
        if (!config_dump_has_line(file, section->name, "over"))
            fputs("over = refuse\n", out);
        if (!config_dump_has_line(file, section->name, "when-down"))
            fprintf(out, "when-down = %s\n", named_when_down(limit, config->rules.when_down));
        if (!config_dump_has_line(file, section->name, "when-error"))
            fprintf(out, "when-error = %s\n",
                    named_when_error(limit, config->rules.is_down_by_error));
    }
}

/* ---- [policy NAME] ---- */

static void write_limit(FILE *out, const struct limit *limit)
{
    char rate[LIMIT_RATE_MAX], burst[LIMIT_RATE_MAX], action[LIMIT_ACTION_MAX];
    struct slice line = limit_line(limit), scope = scope_name((enum scope)limit->scope);
    limit_print_rate(limit, rate);
    fprintf(out, "%.*s = %s", (int)line.len, line.at, rate);
    if (limit->action != OVER_DENY) {
        limit_print_action(limit, action);
        if (unit_is_bytes((enum unit)limit->unit))
            rate_print_bytes(limit->rate.burst, burst, sizeof burst);
        else
            snprintf(burst, sizeof burst, "%" PRIu64, limit->rate.burst);
        if (!unit_is_gauge((enum unit)limit->unit))
            fprintf(out, " burst %s", burst);
        fprintf(out, " per %.*s over %s", (int)scope.len, scope.at, action);
    }
    fputc('\n', out);
}

static void write_policies(FILE *out, const struct config *config, const struct config_file *file)
{
    const struct policies *policies = config->rules.policies;
    for (size_t i = 0; i < policies_count(policies); i++) {
        const struct policy *policy = policies_at(policies, i);
        const struct line_name match = {SECTION_POLICY, slice_str(policy->name), SLICE("match")};
        const struct entry *e = NULL;
        write_heading(out, SECTION_POLICY, slice_str(policy->name));
        while ((e = config_file_next_line(file, &match, e)) != NULL)
            write_entry(out, e, true);
        fprintf(out, "admin = %s\nweight = %" PRIu32 "\npriority = %s\n",
                policy->is_admin ? "yes" : "no", policy->weight, policy->is_low ? "low" : "normal");
        for (size_t j = 0; j < policy->n_limits; j++)
            write_limit(out, &policy->limits[j]);
    }
}

void config_dump(const struct config *config, const struct config_file *file, FILE *out)
{
    fprintf(out, "; weir %s\n", WEIR_VERSION);
    for (unsigned i = 0; i < file->n_sources; i++)
        fprintf(out, "; %s %s\n", i == 0 ? "from" : "included", file->sources[i].path);
    config_dump_write_keys(out, file, SECTION_WEIR);
    config_dump_write_keys(out, file, SECTION_ADMIN);
    write_classes(out, file);
    write_costs(out, file);
    write_policies(out, config, file);
    config_dump_write_named(out, config, file);
}
