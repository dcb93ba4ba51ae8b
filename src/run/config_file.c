/*
 * Collects what inifile.h reads; the first word of a section's title is its kind.
 */
#include "run/config_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/near.h"
#include "base/split.h"
#include "run/config_variable.h"
#include "run/inifile.h"

#define ERRORS_MAX 100 /* a file with more errors is something else, not a configuration */
#define LINE_ROOM 1024
#define PLACE_ROOM 512
#define WHY_ROOM 160
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- reporting ---- */

static void report_line(struct config_file *f, bool is_error, const char *line)
{
    if (is_error && ++f->n_errors > ERRORS_MAX) {
        if (f->n_errors == ERRORS_MAX + 1)
            f->report(f->arg, true, "too many errors: the rest is not shown");
        return;
    }
    f->report(f->arg, is_error, line);
}

void config_file_say(struct config_file *f, bool is_error, unsigned line, const char *section, const char *key,
                     const char *what)
{
    char text[LINE_ROOM];
    char place[PLACE_ROOM] = "";
    if (f->path != NULL && line > 0)
        snprintf(place, sizeof place, "%s:%u: ", f->path, line);
    else if (f->path != NULL)
        snprintf(place, sizeof place, "%s: ", f->path);
    const char *gap = section != NULL && key != NULL ? " " : "";
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", place, section != NULL ? "[" : "", section != NULL ? section : "",
             section != NULL ? "]" : "", gap, key != NULL ? key : "", section != NULL || key != NULL ? ": " : "", what);
    report_line(f, is_error, text);
}

void entry_says(struct config_file *f, bool is_error, const struct entry *entry, const char *what)
{
    char hidden[LINE_ROOM];
    if (entry->is_unusable)
        return;
    if (entry->raw != NULL)
        config_hide(slice_str(entry->raw), what, hidden, sizeof hidden);
    config_file_say(f, is_error, entry->line, f->sections[entry->section].title, entry->key,
                    entry->raw != NULL ? hidden : what);
}

void entry_error(struct config_file *f, const struct entry *entry, const char *what)
{
    entry_says(f, true, entry, what);
}

void section_error(struct config_file *f, const struct section *section, const char *what)
{
    config_file_say(f, true, section->line, section->title, NULL, what);
}

/* "unknown key (did you mean workers?)" */
const char *unknown_name(char *out, size_t size, const char *noun, struct slice near)
{
    if (near.len > 0)
        snprintf(out, size, "unknown %s (did you mean %.*s?)", noun, (int)near.len, near.at);
    else
        snprintf(out, size, "unknown %s", noun);
    return out;
}

/* ---- reading: sections and entries as they stand ---- */

static const struct section_form {
    const char *word;
    enum section_kind kind; /* SECTION_BAD: not yet supported */
    bool has_name;
} forms[] = {
    {"weir", SECTION_WEIR, false}, {"class", SECTION_CLASS, true},  {"policy", SECTION_POLICY, true},
    {"cost", SECTION_COST, false}, {"admin", SECTION_ADMIN, false}, {"limit", SECTION_LIMIT, true},
};

static struct slice form_word(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(forms[i].word);
}

static const struct section_form *find_form(struct slice word)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (slice_eq_nocase(word, slice_str(forms[i].word)))
            return &forms[i];
    return NULL;
}

struct slice section_word(enum section_kind kind)
{
    size_t i = 0;
    while (i < COUNT_OF(forms) && forms[i].kind != kind)
        i++;
    return i < COUNT_OF(forms) ? slice_str(forms[i].word) : SLICE("");
}

static void classify(struct config_file *f, struct section *section)
{
    char why[WHY_ROOM];
    struct slice rest = slice_str(section->title), word = {"", 0};
    bool has_word = split_word(&rest, &word);
    const struct section_form *form = find_form(word);
    section->name = split_trim(rest);
    if (!has_word)
        section_error(f, section, "the section has no name");
    else if (form == NULL)
        section_error(f, section,
                      unknown_name(why, sizeof why, "section", near_name(word, COUNT_OF(forms), form_word, NULL)));
    else if (form->kind == SECTION_BAD)
        section_error(f, section, "not yet supported");
    else if (form->has_name && section->name.len == 0)
        section_error(f, section, "a name is missing after the word");
    else if (!form->has_name && section->name.len > 0)
        section_error(f, section, "this section takes no name");
    else
        section->kind = form->kind;
}

static void on_section(void *arg, unsigned line, struct slice name)
{
    struct config_file *f = arg;
    f->sections = mem_realloc(f->sections, f->n_sections + 1, sizeof *f->sections);
    struct section *section = &f->sections[f->n_sections++];
    *section = (struct section){.line = line, .title = mem_strndup(name.at, name.len)};
    classify(f, section);
}

/* The value becomes what it means, and is kept as it was written. */
static void expand(struct config_file *f, struct entry *entry)
{
    char why[CONFIG_WHY_ROOM], *meant = NULL;
    if (!config_expand(slice_str(entry->value), &meant, why, sizeof why)) {
        entry_error(f, entry, why);
        entry->is_unusable = true;
        return;
    }
    struct slice trimmed = split_trim(slice_str(meant));
    entry->raw = entry->value;
    entry->value = mem_strndup(trimmed.at, trimmed.len);
    free(meant);
}

static void on_key(void *arg, unsigned line, struct slice key, struct slice value)
{
    struct config_file *f = arg;
    if (f->n_sections == 0) {
        char *name = mem_strndup(key.at, key.len);
        config_file_say(f, true, line, NULL, name, "no section yet: put [weir] above it");
        free(name);
        return;
    }
    f->entries = mem_realloc(f->entries, f->n_entries + 1, sizeof *f->entries);
    struct entry *entry = &f->entries[f->n_entries++];
    *entry = (struct entry){
        .line = line,
        .section = f->n_sections - 1,
        .key = mem_strndup(key.at, key.len),
        .value = mem_strndup(value.at, value.len),
    };
    if (config_has_variable(value))
        expand(f, entry);
}

static void on_error(void *arg, unsigned line, const char *what)
{
    struct config_file *f = arg;
    config_file_say(f, true, line, f->n_sections > 0 && line > 0 ? f->sections[f->n_sections - 1].title : NULL, NULL,
                    what);
}

void config_file_read(struct config_file *f)
{
    struct inifile_events events = {f, on_section, on_key, on_error};
    inifile_read(f->path, &events);
}

void config_file_fini(struct config_file *f)
{
    for (size_t i = 0; i < f->n_sections; i++)
        free(f->sections[i].title);
    for (size_t i = 0; i < f->n_entries; i++) {
        free(f->entries[i].key);
        free(f->entries[i].value);
        free(f->entries[i].raw);
    }
    free(f->sections);
    free(f->entries);
    f->sections = NULL;
    f->entries = NULL;
    f->n_sections = f->n_entries = 0;
}

/* ---- finding ---- */

const struct entry *config_file_next(const struct config_file *f, enum section_kind kind, const struct entry *previous)
{
    for (size_t i = previous != NULL ? (size_t)(previous - f->entries) + 1 : 0; i < f->n_entries; i++)
        if (f->sections[f->entries[i].section].kind == kind)
            return &f->entries[i];
    return NULL;
}

const struct entry *config_file_next_of(const struct config_file *f, enum section_kind kind, struct slice name,
                                        const struct entry *previous)
{
    const struct entry *e = previous;
    while ((e = config_file_next(f, kind, e)) != NULL)
        if (slice_eq_nocase(f->sections[e->section].name, name))
            return e;
    return NULL;
}

struct section *config_file_section(const struct config_file *f, enum section_kind kind, struct slice name)
{
    for (size_t i = 0; i < f->n_sections; i++)
        if (f->sections[i].kind == kind && slice_eq_nocase(f->sections[i].name, name))
            return &f->sections[i];
    return NULL;
}
