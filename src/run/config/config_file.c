/*
 * Collects the sections and entries of an INI file (inifile.h). The first word of a section's title
 * is its kind.
 */
#include "run/config/config_file.h"

#include <errno.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "run/config/config_hints.h"
#include "run/config/config_variable.h"
#include "run/config/inifile.h"

#define ERRORS_MAX 100 /* a file with more errors is not a configuration */
#define LINE_ROOM 1024
#define PATH_ROOM 512 /* of a path in a message */
#define WHY_ROOM 160
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define INCLUDE_FILES_MAX 256
#define INCLUDE_DEPTH_MAX 8

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

static const char *config_file_path_of(const struct config_file *f, struct location location)
{
    return location.file < f->n_sources ? f->sources[location.file].path : f->path;
}

void config_file_say(struct config_file *f, bool is_error, struct location location,
                     const char *section, const char *key, const char *what)
{
    char text[LINE_ROOM];
    char at[PATH_ROOM] = "";
    if (f->path != NULL && location.line > 0)
        snprintf(at, sizeof at, "%s:%u: ", config_file_path_of(f, location), location.line);
    else if (f->path != NULL)
        snprintf(at, sizeof at, "%s: ", config_file_path_of(f, location));
    const char *gap = section != NULL && key != NULL ? " " : "";
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", at, section != NULL ? "[" : "",
             section != NULL ? section : "", section != NULL ? "]" : "", gap,
             key != NULL ? key : "", section != NULL || key != NULL ? ": " : "", what);
    report_line(f, is_error, text);
}

void entry_says(struct config_file *f, bool is_error, const struct entry *entry, const char *what)
{
    char hidden[LINE_ROOM];
    if (entry->is_unusable)
        return;
    if (entry->raw != NULL)
        config_hide(slice_str(entry->raw), what, hidden, sizeof hidden);
    config_file_say(f, is_error, entry->location, f->sections[entry->section].title, entry->key,
                    entry->raw != NULL ? hidden : what);
}

void entry_error(struct config_file *f, const struct entry *entry, const char *what)
{
    entry_says(f, true, entry, what);
}

void section_says(struct config_file *f, bool is_error, const struct section *section,
                  const char *what)
{
    config_file_say(f, is_error, section->location, section->title, NULL, what);
}

void section_error(struct config_file *f, const struct section *section, const char *what)
{
    section_says(f, true, section, what);
}

const char *location_print(const struct config_file *f, struct location location,
                           struct location near, char out[LOCATION_ROOM])
{
    if (location.file == near.file)
        snprintf(out, LOCATION_ROOM, "line %u", location.line);
    else
        snprintf(out, LOCATION_ROOM, "line %u of %s", location.line,
                 config_file_path_of(f, location));
    return out;
}

/* Writes "unknown key (did you mean workers?)". */
const char *unknown_name(char *out, size_t size, const char *noun, struct slice near)
{
    if (near.len > 0)
        snprintf(out, size, "unknown %s (did you mean %.*s?)", noun, (int)near.len, near.at);
    else
        snprintf(out, size, "unknown %s", noun);
    return out;
}

/* ---- reading: sections and entries as written ---- */

static const struct section_form {
    const char *word;
    enum section_kind kind; /* SECTION_BAD: not yet supported */
    bool has_name;
} forms[] = {
    {"weir", SECTION_WEIR, false},    {"class", SECTION_CLASS, true},
    {"policy", SECTION_POLICY, true}, {"cost", SECTION_COST, false},
    {"admin", SECTION_ADMIN, false},  {"limit", SECTION_LIMIT, true},
};

static struct slice form_word(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(forms[i].word);
}

static const struct section_form *config_file_find_form(struct slice word)
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
    const struct section_form *form = config_file_find_form(word);
    section->name = split_trim(rest);
    if (!has_word)
        section_error(f, section, "the section has no name");
    else if (form == NULL)
        section_error(
            f, section,
            config_hint_name(HINT_IN_SECTION, NULL, word, SLICE(""), (struct why){why, sizeof why})
                ? why
                : unknown_name(why, sizeof why, "section",
                               near_name(word, COUNT_OF(forms), form_word, NULL)));
    else if (form->kind == SECTION_BAD)
        section_error(f, section, "not yet supported");
    else if (form->has_name && section->name.len == 0)
        section_error(f, section, "a name is missing after the word");
    else if (!form->has_name && section->name.len > 0)
        section_error(f, section, "this section takes no name");
    else
        section->kind = form->kind;
}

/* The state of reading one file, and the files that it includes. */
struct reading {
    struct config_file *file;
    unsigned source;
    unsigned depth;
    bool has_section;
    size_t section; /* index of the current section */
};

static void on_section(void *arg, unsigned line, struct slice name)
{
    struct reading *r = arg;
    struct config_file *f = r->file;
    f->sections = mem_realloc(f->sections, f->n_sections + 1, sizeof *f->sections);
    r->has_section = true;
    r->section = f->n_sections++;
    struct section *section = &f->sections[r->section];
    *section =
        (struct section){.location = {line, r->source}, .title = mem_strndup(name.at, name.len)};
    classify(f, section);
}

/* Replaces the value by its expansion, and keeps the written value in `raw`. */
static void expand(struct config_file *f, struct entry *entry)
{
    char why[CONFIG_WHY_ROOM], *meant = NULL;
    if (!config_expand(slice_str(entry->value), &meant, (struct why){why, sizeof why})) {
        entry_error(f, entry, why);
        entry->is_unusable = true;
        return;
    }
    struct slice trimmed = split_trim(slice_str(meant));
    entry->raw = entry->value;
    entry->value = mem_strndup(trimmed.at, trimmed.len);
    free(meant);
}

static void include(struct reading *r, size_t entry);

static void on_key(void *arg, unsigned line, struct slice key, struct slice value)
{
    struct reading *r = arg;
    struct config_file *f = r->file;
    if (!r->has_section) {
        char *name = mem_strndup(key.at, key.len);
        config_file_say(
            f, true, (struct location){line, r->source}, NULL, name,
            "this line is in no section: write [weir] above it, or [policy NAME] for a limit");
        free(name);
        return;
    }
    f->entries = mem_realloc(f->entries, f->n_entries + 1, sizeof *f->entries);
    struct entry *entry = &f->entries[f->n_entries++];
    *entry = (struct entry){
        .location = {line, r->source},
        .section = r->section,
        .key = mem_strndup(key.at, key.len),
        .value = mem_strndup(value.at, value.len),
    };
    if (config_has_variable(value))
        expand(f, entry);
    bool is_include =
        f->sections[r->section].kind == SECTION_WEIR && slice_eq_nocase(key, SLICE("include"));
    if (is_include && !entry->is_unusable && entry->value[0] != '\0')
        include(r, f->n_entries - 1);
}

static void on_error(void *arg, unsigned line, const char *what)
{
    struct reading *r = arg;
    const char *title = r->has_section && line > 0 ? r->file->sections[r->section].title : NULL;
    config_file_say(r->file, true, (struct location){line, r->source}, title, NULL, what);
}

static void read_source(struct config_file *f, unsigned source, unsigned depth)
{
    struct reading r = {.file = f, .source = source, .depth = depth};
    const struct inifile_events events = {&r, on_section, on_key, on_error};
    char what[WHY_ROOM];
    unsigned line;
    const char *format = config_hint_format(f->sources[source].path, &line);
    if (format != NULL) {
        snprintf(
            what, sizeof what,
            "this file is %s, but weir reads INI: write [weir] on a line of its own, and below it key = value, "
            "like upstream = 127.0.0.1:6379",
            format);
        config_file_say(f, true, (struct location){line, source}, NULL, NULL, what);
        return;
    }
    inifile_read(f->sources[source].path, &events);
}

/* ---- reading: included files ---- */

/* Returns the index of the source with this device and inode; n_sources: none. */
static unsigned config_file_find_source(const struct config_file *f, const struct stat *status)
{
    unsigned i = 0;
    while (i < f->n_sources &&
           (f->sources[i].device != status->st_dev || f->sources[i].inode != status->st_ino))
        i++;
    return i;
}

static bool config_file_leads_to(const struct config_file *f, unsigned source, unsigned from)
{
    while (from != source && from > 0)
        from = f->sources[from].from.file;
    return from == source;
}

static unsigned add_source(struct config_file *f, const char *path, struct location from,
                           const struct stat *status)
{
    f->sources = mem_realloc(f->sources, f->n_sources + 1U, sizeof *f->sources);
    f->sources[f->n_sources] = (struct source){
        .path = mem_strdup(path),
        .from = from,
        .device = status->st_dev,
        .inode = status->st_ino,
    };
    return f->n_sources++;
}

/* True if the file may be read now. False: `why` has the error. */
static bool may_include(const struct config_file *f, const struct reading *r, const char *path,
                        struct stat *status, char *why)
{
    char location[LOCATION_ROOM];
    if (stat(path, status) != 0)
        return why_set(why, CONFIG_WHY_ROOM, "%s cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(status->st_mode))
        return why_set(why, CONFIG_WHY_ROOM, "%s is a folder: write %s/*.conf for the files in it",
                       path, path);
    if (!S_ISREG(status->st_mode))
        return why_set(why, CONFIG_WHY_ROOM, "%s is not a regular file", path);
    unsigned known = config_file_find_source(f, status);
    struct location here = {1, r->source};
    if (known < f->n_sources && config_file_leads_to(f, known, r->source))
        return why_set(why, CONFIG_WHY_ROOM, "%s would include itself: remove this line", path);
    if (known < f->n_sources)
        return why_set(why, CONFIG_WHY_ROOM, "%s is already included in %s", path,
                       location_print(f, f->sources[known].from, here, location));
    if (r->depth == INCLUDE_DEPTH_MAX)
        return why_set(why, CONFIG_WHY_ROOM, "files are included more than %d deep",
                       INCLUDE_DEPTH_MAX);
    if (f->n_sources > INCLUDE_FILES_MAX)
        return why_set(why, CONFIG_WHY_ROOM, "more than %d files are included", INCLUDE_FILES_MAX);
    return true;
}

/*
 * Returns the pattern prefixed by the folder of the file `from`; heap. Special characters of the
 * folder are escaped.
 */
static char *absolute(const char *from, struct slice pattern)
{
    const char *slash = strrchr(from, '/');
    size_t folder = slash != NULL && pattern.at[0] != '/' ? (size_t)(slash - from) + 1 : 0;
    char *path = mem_alloc(2 * folder + pattern.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < folder; i++) {
        if (strchr("*?[]\\", from[i]) != NULL)
            path[len++] = '\\';
        path[len++] = from[i];
    }
    memcpy(path + len, pattern.at, pattern.len);
    path[len + pattern.len] = '\0';
    return path;
}

/* True if the text contains one of these characters. */
static bool holds_any(struct slice text, const char *characters)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr(characters, text.at[i]) != NULL)
            return true;
    return false;
}

/*
 * Reads the files that match the pattern (* ? [...]), sorted by byte. A pattern without these
 * characters names one file, which must exist.
 */
static void include_fitting(struct reading *r, size_t entry, struct slice pattern)
{
    struct config_file *f = r->file;
    char why[CONFIG_WHY_ROOM];
    glob_t found = {0};
    struct stat status;
    bool is_pattern = holds_any(pattern, "*?[");
    char *path = absolute(f->sources[r->source].path, pattern);
    int result = glob(path, GLOB_ERR, NULL, &found); /* weir sets no locale */
    free(path);
    if (result == GLOB_NOMATCH)
        why_set(why, sizeof why, is_pattern ? "no file matches %.*s%s" : "there is no file %.*s%s",
                WHY_SLICE(pattern),
                holds_any(pattern, " \t") ? ": several paths are separated by commas" : "");
    else if (result != 0)
        why_set(why, sizeof why, "the folder of %.*s cannot be read", WHY_SLICE(pattern));
    if (result != 0)
        entry_says(f, result != GLOB_NOMATCH || !is_pattern, &f->entries[entry], why);
    for (size_t i = 0; result == 0 && i < found.gl_pathc; i++) {
        if (may_include(f, r, found.gl_pathv[i], &status, why))
            read_source(f, add_source(f, found.gl_pathv[i], f->entries[entry].location, &status),
                        r->depth + 1);
        else
            entry_error(f, &f->entries[entry], why);
    }
    globfree(&found);
}

/* The entry is passed by index: the array moves while entries are added. */
static void include(struct reading *r, size_t entry)
{
    char *value = mem_strdup(r->file->entries[entry].value);
    struct slice rest = slice_str(value), pattern;
    while (split_next(&rest, ',', &pattern))
        if (pattern.len > 0)
            include_fitting(r, entry, pattern);
        else
            entry_error(r->file, &r->file->entries[entry], "a path is missing next to a comma");
    free(value);
}

void config_file_read(struct config_file *f)
{
    struct stat status = {0};
    if (stat(f->path, &status) != 0)
        status = (struct stat){0}; /* read_source reports the error */
    read_source(f, add_source(f, f->path, (struct location){0}, &status), 0);
    config_file_index(f);
}

size_t config_file_bytes(const struct config_file *f)
{
    size_t bytes = 0;
    struct stat status;
    for (size_t i = 0; i < f->n_sources; i++)
        if (stat(f->sources[i].path, &status) == 0 && status.st_size > 0)
            bytes += (size_t)status.st_size;
    return bytes;
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
    for (size_t i = 0; i < f->n_sources; i++)
        free(f->sources[i].path);
    free(f->sections);
    free(f->entries);
    free(f->sources);
    free(f->table);
    f->table = NULL;
    f->n_table = 0;
    f->sections = NULL;
    f->entries = NULL;
    f->sources = NULL;
    f->n_sections = f->n_entries = f->n_sources = 0;
}

/* ---- finding ---- */

/*
 * FNV-1a over lower case. The names come from the operator, so collisions on purpose are no
 * concern.
 */
static size_t config_file_hash_of(enum section_kind kind, struct slice name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)kind;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)ascii_lower(name.at[i])) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32);
}

/*
 * Returns the cell of the first section of that kind and name, or the free cell for it. The table
 * has room.
 */
static size_t *config_file_spot_of(const struct config_file *f, enum section_kind kind,
                                   struct slice name)
{
    size_t at = config_file_hash_of(kind, name) & (f->n_table - 1);
    for (; f->table[at] != 0; at = (at + 1) & (f->n_table - 1)) {
        const struct section *section = &f->sections[f->table[at] - 1];
        if (section->kind == kind && slice_eq_nocase(section->name, name))
            break;
    }
    return &f->table[at];
}

static void index_sections(struct config_file *f)
{
    for (size_t i = 0; i < f->n_sections; i++) {
        struct section *section = &f->sections[i];
        size_t *spot = config_file_spot_of(f, section->kind, section->name);
        *spot = *spot != 0 ? *spot : i + 1;
        section->first = *spot - 1;
        section->head = section->tail = 0;
    }
}

void config_file_index(struct config_file *f)
{
    free(f->table);
    f->n_table = 2;
    while (f->n_table < 2 * f->n_sections)
        f->n_table *= 2;
    f->table = mem_zalloc(f->n_table, sizeof *f->table);
    index_sections(f);
    for (size_t i = 0; i < f->n_entries; i++) {
        struct section *first = &f->sections[f->sections[f->entries[i].section].first];
        f->entries[i].next = 0;
        if (first->head == 0)
            first->head = i + 1;
        else
            f->entries[first->tail - 1].next = i + 1;
        first->tail = i + 1;
    }
}

const struct entry *config_file_next(const struct config_file *f, enum section_kind kind,
                                     const struct entry *previous)
{
    for (size_t i = previous != NULL ? (size_t)(previous - f->entries) + 1 : 0; i < f->n_entries;
         i++)
        if (f->sections[f->entries[i].section].kind == kind)
            return &f->entries[i];
    return NULL;
}

const struct entry *config_file_entry(const struct config_file *f, enum section_kind kind,
                                      const char *key)
{
    const struct entry *e = NULL;
    while ((e = config_file_next(f, kind, e)) != NULL &&
           !slice_eq_nocase(slice_str(e->key), slice_str(key)))
        ;
    return e;
}

struct section *config_file_section(const struct config_file *f, enum section_kind kind,
                                    struct slice name)
{
    size_t *spot = f->n_table > 0 ? config_file_spot_of(f, kind, name) : NULL;
    return spot != NULL && *spot != 0 ? &f->sections[*spot - 1] : NULL;
}

struct section *config_file_next_section(const struct config_file *f, enum section_kind kind,
                                         const struct section *previous)
{
    for (size_t i = previous != NULL ? (size_t)(previous - f->sections) + 1 : 0; i < f->n_sections;
         i++)
        if (f->sections[i].kind == kind && f->sections[i].first == i)
            return &f->sections[i];
    return NULL;
}

const struct entry *config_file_next_of(const struct config_file *f, enum section_kind kind,
                                        struct slice name, const struct entry *previous)
{
    const struct section *section = previous == NULL ? config_file_section(f, kind, name) : NULL;
    size_t next = previous != NULL ? previous->next : section != NULL ? section->head : 0;
    return next > 0 ? &f->entries[next - 1] : NULL;
}
