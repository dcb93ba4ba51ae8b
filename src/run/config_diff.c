#include "run/config_diff.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/split.h"
#include "run/config_keys.h"

static bool is_key_section(enum section_kind kind)
{
    return kind == SECTION_WEIR || kind == SECTION_ADMIN;
}

/* What holds for that name: its lines, else its default, else "". Heap. */
static char *value_of(const struct config_file *file, const struct line_name *name)
{
    char *value = config_file_value(file, name);
    if (value)
        return value;
    size_t i = is_key_section(name->kind) ? config_key_find(name->kind, name->key) : config_keys_count();
    const char *initial = i < config_keys_count() ? config_key_default(config_key_at(i)) : NULL;
    return initial ? mem_strndup(initial, strlen(initial)) : mem_strndup("", 0);
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
            !config_file_next_line(running, &name, NULL))
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
