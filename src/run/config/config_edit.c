#include "run/config/config_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/slice.h"
#include "run/config/config_keys.h"

struct line_name line_name_of(const struct config_file *file, const struct entry *entry)
{
    const struct section *section = &file->sections[entry->section];
    return (struct line_name){section->kind, section->name, slice_str(entry->key)};
}

const struct entry *config_file_next_line(const struct config_file *file,
                                          const struct line_name *name,
                                          const struct entry *previous)
{
    const struct entry *e = previous;
    while ((e = config_file_next_of(file, name->kind, name->section, e)) != NULL)
        if (slice_eq_nocase(slice_str(e->key), name->key))
            return e;
    return NULL;
}

/* ---- copying ---- */

void config_file_copy(struct config_file *copy, const struct config_file *file)
{
    *copy = (struct config_file){
        .n_sections = file->n_sections,
        .n_entries = file->n_entries,
        .n_sources = file->n_sources,
    };
    copy->sources = mem_zalloc(file->n_sources, sizeof *copy->sources);
    for (size_t i = 0; i < file->n_sources; i++) {
        copy->sources[i] = file->sources[i];
        copy->sources[i].path = mem_strdup(file->sources[i].path);
    }
    copy->sections = mem_zalloc(file->n_sections, sizeof *copy->sections);
    copy->entries = mem_zalloc(file->n_entries, sizeof *copy->entries);
    for (size_t i = 0; i < file->n_sections; i++) {
        const struct section *from = &file->sections[i];
        struct section *to = &copy->sections[i];
        *to = *from;
        to->title = mem_strdup(from->title);
        if (from->name.len > 0)
            to->name.at = to->title + (from->name.at - from->title);
    }
    for (size_t i = 0; i < file->n_entries; i++) {
        copy->entries[i] = file->entries[i];
        copy->entries[i].key = mem_strdup(file->entries[i].key);
        copy->entries[i].value = mem_strdup(file->entries[i].value);
        copy->entries[i].raw = mem_strdup(file->entries[i].raw);
    }
    config_file_index(copy);
}

/* ---- finding ---- */

char *config_file_value(const struct config_file *file, const struct line_name *name)
{
    char *value = NULL;
    const struct entry *e = NULL;
    while ((e = config_file_next_line(file, name, e)) != NULL) {
        struct slice more = split_trim(slice_str(e->value));
        char *before = value;
        value = before == NULL ? mem_strndup(more.at, more.len)
                               : mem_print("%s, %.*s", before, (int)more.len, more.at);
        free(before);
    }
    return value;
}

/* ---- replacing ---- */

/* Returns the heading of a section: "policy free", "weir"; heap. */
static char *title_of(const struct line_name *name)
{
    struct slice word = section_word(name->kind);
    return mem_print("%.*s%s%.*s", (int)word.len, word.at, name->section.len > 0 ? " " : "",
                     (int)name->section.len, name->section.at);
}

static size_t section_index(struct config_file *file, const struct line_name *name)
{
    const struct section *known = config_file_section(file, name->kind, name->section);
    if (known != NULL)
        return (size_t)(known - file->sections);
    char *title = title_of(name);
    struct slice in_title = slice_str(title);
    file->sections = mem_realloc(file->sections, file->n_sections + 1, sizeof *file->sections);
    file->sections[file->n_sections] = (struct section){
        .kind = name->kind,
        .title = title,
        .name = slice_of(title + in_title.len - name->section.len, name->section.len),
    };
    return file->n_sections++;
}

static void config_edit_append(struct config_file *file, const struct line_name *name,
                               const char *value)
{
    size_t section = section_index(file, name);
    file->entries = mem_realloc(file->entries, file->n_entries + 1, sizeof *file->entries);
    file->entries[file->n_entries++] = (struct entry){
        .section = section,
        .key = mem_strndup(name->key.at, name->key.len),
        .value = mem_strdup(value),
    };
}

static void set_value(struct entry *entry, const char *value)
{
    free(entry->value);
    free(entry->raw);
    entry->value = mem_strdup(value);
    entry->raw = NULL;
}

/*
 * Removes the lines of that name except the first `keep`. Returns how many lines had that name.
 * *first: the first line that is kept.
 */
static size_t config_edit_thin_out(struct config_file *file, const struct line_name *name,
                                   size_t keep, struct entry **first)
{
    size_t n = 0, found = 0;
    for (size_t i = 0; i < file->n_entries; i++) {
        struct entry *e = &file->entries[i];
        struct line_name its = line_name_of(file, e);
        bool is_named = its.kind == name->kind && slice_eq_nocase(its.section, name->section) &&
                        slice_eq_nocase(its.key, name->key);
        if (is_named && ++found > keep) {
            free(e->key);
            free(e->value);
            free(e->raw);
            continue;
        }
        file->entries[n] = *e;
        if (is_named)
            *first = &file->entries[n];
        n++;
    }
    file->n_entries = n;
    return found;
}

void config_file_replace(struct config_file *file, const struct line_name *name, const char *value)
{
    struct entry *first = NULL;
    size_t found = config_edit_thin_out(file, name, value != NULL ? 1 : 0, &first);
    if (value != NULL && found > 0)
        set_value(first, value);
    else if (value != NULL)
        config_edit_append(file, name, value);
    config_file_index(file);
}

/* ---- differences ---- */

#define TEXT_ROOM 1024

/* Returns the value of the lines of that name, else the key's default, else ""; heap. */
static char *config_edit_value_of(const struct config_file *file, const struct line_name *name)
{
    char *value = config_file_value(file, name);
    if (value != NULL)
        return value;
    const struct config_key *key = config_key_find(name->kind, name->key);
    const char *initial = key != NULL && key->initial != NULL ? key->initial : "";
    return mem_strdup(initial);
}

static char *config_edit_lower(struct slice text)
{
    char *copy = mem_strndup(text.at, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = ascii_lower(copy[i]);
    return copy;
}

/* Returns "policy free", "weir", in lower case; heap. */
static char *section_text(const struct line_name *name)
{
    char *title = title_of(name), *text = config_edit_lower(slice_str(title));
    free(title);
    return text;
}

void differences_add(struct differences *d, struct difference one)
{
    d->at = mem_realloc(d->at, d->count + 1, sizeof *d->at);
    d->at[d->count++] = one;
}

static void config_edit_compare(struct differences *d, const struct config_file *running,
                                const struct config_file *file, const struct line_name *name)
{
    char *mine = config_edit_value_of(running, name);
    char *theirs = config_edit_value_of(file, name);
    if (strcmp(mine, theirs) == 0) {
        free(mine);
        free(theirs);
        return;
    }
    differences_add(
        d, (struct difference){section_text(name), config_edit_lower(name->key), mine, theirs});
}

struct differences config_diff(const struct config_file *running, const struct config_file *file)
{
    struct differences d = {0};
    for (size_t i = 0; i < running->n_entries; i++) {
        struct line_name name = line_name_of(running, &running->entries[i]);
        if (config_file_next_line(running, &name, NULL) == &running->entries[i])
            config_edit_compare(&d, running, file, &name);
    }
    for (size_t i = 0; i < file->n_entries; i++) {
        struct line_name name = line_name_of(file, &file->entries[i]);
        if (config_file_next_line(file, &name, NULL) == &file->entries[i] &&
            config_file_next_line(running, &name, NULL) == NULL)
            config_edit_compare(&d, running, file, &name);
    }
    return d;
}

void differences_fini(struct differences *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->at[i].section);
        free(d->at[i].what);
        free(d->at[i].running);
        free(d->at[i].file);
    }
    free(d->at);
    *d = (struct differences){0};
}

struct line_name difference_line(const struct difference *difference)
{
    struct line_name name = {.section = slice_str(difference->section),
                             .key = slice_str(difference->what)};
    struct slice word;
    split_word(&name.section, &word);
    name.section = split_trim(name.section);
    for (int kind = SECTION_WEIR; kind <= SECTION_LIMIT; kind++)
        if (slice_eq(word, section_word((enum section_kind)kind)))
            name.kind = (enum section_kind)kind;
    return name;
}

/* ---- differences at a reload ---- */

void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file)
{
    struct differences set = config_diff(running, loaded);
    struct differences gone = config_diff(running, file);
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; j < gone.count; j++)
            if (strcmp(set.at[i].section, gone.at[j].section) == 0 &&
                strcmp(set.at[i].what, gone.at[j].what) == 0)
                journal_log(journal, LOG_WARN, "reload",
                            "dropped at the reload, because it was only SET: [%s] %s%s%s",
                            gone.at[j].section, gone.at[j].what,
                            gone.at[j].running[0] ? " = " : " removed", gone.at[j].running);
    differences_fini(&set);
    differences_fini(&gone);
}

static void add_word(char *text, size_t size, const char *section, const char *word)
{
    size_t len = strlen(text);
    snprintf(text + len, size - len, "%s%s%s", len > 0 ? ", " : "", section, word);
}

/*
 * True if a reload may not change the value. A reload may change the password, but not add or
 * remove a password.
 */
static bool config_edit_must_stay(const struct difference *difference)
{
    struct line_name name = difference_line(difference);
    const struct config_key *key = config_key_find(name.kind, name.key);
    bool is_password = strcmp(difference->what, "upstream-password-file") == 0;
    return (key != NULL && key->needs_restart) ||
           (is_password && (difference->running[0] == '\0' || difference->file[0] == '\0'));
}

char *config_diff_keep_settings(struct journal *journal, const struct config_file *running,
                                struct config_file *file)
{
    char names[TEXT_ROOM] = "";
    struct differences d = config_diff(running, file);
    for (size_t i = 0; i < d.count; i++) {
        if (!config_edit_must_stay(&d.at[i]))
            continue;
        struct line_name name = difference_line(&d.at[i]);
        char *value = config_file_value(running, &name);
        config_file_replace(file, &name, value);
        free(value);
        add_word(names, sizeof names, name.kind == SECTION_ADMIN ? "[admin] " : "", d.at[i].what);
    }
    differences_fini(&d);
    if (names[0] == '\0')
        return NULL;
    journal_log(journal, LOG_WARN, "reload", "changed in the file, but needs a restart: %s", names);
    return mem_strdup(names);
}
