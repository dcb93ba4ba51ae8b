#include "run/config/config_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/split.h"
#include "run/config/config_keys.h"
#include "run/config/log_event.h"

#define TEXT_ROOM 1024

static bool is_key_section(enum section_kind kind)
{
    return kind == SECTION_WEIR || kind == SECTION_ADMIN;
}

/* The value for that name: its lines, else its default, else "". Heap. */
static char *value_of(const struct config_file *file, const struct line_name *name)
{
    char *value = config_file_value(file, name);
    if (value != NULL)
        return value;
    size_t i = is_key_section(name->kind) ? config_key_find(name->kind, name->key) : config_keys_count();
    const char *initial = i < config_keys_count() ? config_key_default(config_key_at(i)) : NULL;
    return initial != NULL ? mem_strndup(initial, strlen(initial)) : mem_strndup("", 0);
}

static char *lower(struct slice text)
{
    char *copy = mem_strndup(text.at, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = ascii_lower(copy[i]);
    return copy;
}

/* "policy free", "weir" */
static char *section_text(const struct line_name *name)
{
    struct slice word = section_word(name->kind);
    size_t room = word.len + 1 + name->section.len + 1;
    char *text = mem_alloc(room);
    int len = snprintf(text, room, "%.*s%s", (int)word.len, word.at, name->section.len > 0 ? " " : "");
    for (size_t i = 0; i < name->section.len; i++)
        text[len++] = ascii_lower(name->section.at[i]);
    text[len] = '\0';
    return text;
}

static void compare(struct differences *d, const struct config_file *running, const struct config_file *file,
                    const struct line_name *name)
{
    char *mine = value_of(running, name);
    char *theirs = value_of(file, name);
    if (strcmp(mine, theirs) == 0) {
        free(mine);
        free(theirs);
        return;
    }
    d->at = mem_realloc(d->at, d->count + 1, sizeof *d->at);
    d->at[d->count++] = (struct difference){section_text(name), lower(name->key), mine, theirs};
}

struct differences config_diff(const struct config_file *running, const struct config_file *file)
{
    struct differences d = {0};
    for (size_t i = 0; i < running->n_entries; i++) {
        struct line_name name = line_name_of(running, &running->entries[i]);
        if (config_file_next_line(running, &name, NULL) == &running->entries[i])
            compare(&d, running, file, &name);
    }
    for (size_t i = 0; i < file->n_entries; i++) {
        struct line_name name = line_name_of(file, &file->entries[i]);
        if (config_file_next_line(file, &name, NULL) == &file->entries[i] &&
            config_file_next_line(running, &name, NULL) == NULL)
            compare(&d, running, file, &name);
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
    struct line_name name = {.section = slice_str(difference->section), .key = slice_str(difference->what)};
    struct slice word;
    split_word(&name.section, &word);
    name.section = split_trim(name.section);
    for (int kind = SECTION_WEIR; kind <= SECTION_LIMIT; kind++)
        if (slice_eq(word, section_word((enum section_kind)kind)))
            name.kind = (enum section_kind)kind;
    return name;
}

bool difference_needs_restart(const struct difference *difference)
{
    struct line_name name = difference_line(difference);
    size_t i = is_key_section(name.kind) ? config_key_find(name.kind, name.key) : config_keys_count();
    return i < config_keys_count() && config_key_needs_restart(config_key_at(i));
}

/* ---- what a reload makes of them ---- */

void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file)
{
    struct differences set = config_diff(running, loaded);
    struct differences gone = config_diff(running, file);
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; j < gone.count; j++)
            if (strcmp(set.at[i].section, gone.at[j].section) == 0 && strcmp(set.at[i].what, gone.at[j].what) == 0)
                log_event(journal, LOG_WARN, "reload", "dropped, for it was only SET: [%s] %s%s%s", gone.at[j].section,
                          gone.at[j].what, gone.at[j].running[0] ? " = " : " removed", gone.at[j].running);
    differences_fini(&set);
    differences_fini(&gone);
}

static void add_word(char *text, size_t size, const char *section, const char *word)
{
    size_t len = strlen(text);
    snprintf(text + len, size - len, "%s%s%s", len > 0 ? ", " : "", section, word);
}

/* A reload may change the password, but not whether there is one. */
static bool must_stay(const struct difference *difference)
{
    bool is_password = strcmp(difference->what, "upstream-password-file") == 0;
    return difference_needs_restart(difference) ||
           (is_password && (difference->running[0] == '\0' || difference->file[0] == '\0'));
}

char *config_diff_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file)
{
    char names[TEXT_ROOM] = "";
    struct differences d = config_diff(running, file);
    for (size_t i = 0; i < d.count; i++) {
        if (!must_stay(&d.at[i]))
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
    log_event(journal, LOG_WARN, "reload", "changed in the file, but needs a restart: %s", names);
    return mem_strndup(names, strlen(names));
}
