/*
 * A configuration file before it is interpreted: its sections and entries with their line numbers; and how errors in
 * them are reported.
 */
#ifndef WEIR_RUN_CONFIG_FILE_H
#define WEIR_RUN_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/slice.h"

#define CONFIG_WHY_ROOM 320 /* of a message about one line */

enum section_kind {
    SECTION_BAD,
    SECTION_WEIR,
    SECTION_CLASS,
    SECTION_POLICY,
    SECTION_COST,
    SECTION_ADMIN,
    SECTION_LIMIT
};

/* Where something is written. */
struct place {
    unsigned line; /* 0: nowhere */
    unsigned file; /* index of config_file.sources */
};

struct section {
    enum section_kind kind;
    struct place place;
    char *title;       /* as written between the brackets */
    struct slice name; /* in title: what follows "class" or "policy" */
    bool is_done;      /* a class: it has been defined, or its error reported */
    size_t first;      /* index of the first section of the same kind and name, by config_file_index; there too: */
    size_t head, tail; /* the first and last entry of all these sections, as entry.next; 0: there is none */
};

struct entry {
    struct place place;
    size_t section; /* index */
    size_t next;    /* index plus one of the next entry in sections of this kind and name; 0: none */
    char *key;
    char *value;
    char *raw;        /* the value as written, if it has variables (config_variable.h); else NULL */
    bool is_unusable; /* its variables cannot be read, as has been said: no more is said of it */
};

/* A file that is read, or has been. */
struct source {
    char *path;
    struct place from; /* the line that includes it; of the first one none */
    dev_t device;      /* device and inode tell that it is the same */
    ino_t inode;
};

struct config_file {
    const char *path; /* NULL: no file; then errors are reported without a position */
    void (*report)(void *arg, bool is_error, const char *line);
    void *arg;
    unsigned n_errors;
    struct section *sections;
    size_t n_sections;
    struct entry *entries;
    size_t n_entries;
    size_t *table; /* by hash of kind and name: index plus one of a section that is the first of those; 0: free */
    size_t n_table;
    struct source *sources; /* the file itself, then what it includes, in the order of reading */
    unsigned n_sources;
};

/*
 * Read all of file->path, and of the files that it includes where they are named; bad lines and unknown sections are
 * reported. path, report and arg are set by the caller.
 */
void config_file_read(struct config_file *file);
void config_file_fini(struct config_file *file);

/* Find sections by name, and their entries, as they stand now: after each change of the lists. */
void config_file_index(struct config_file *file);

/* How large are the files that it was read from, as they are now? */
size_t config_file_bytes(const struct config_file *file);

/* The next entry of a section of this kind, after `previous` or the first; NULL after the last. */
const struct entry *config_file_next(const struct config_file *file, enum section_kind kind,
                                     const struct entry *previous);

/* As config_file_next, only in sections of this name, of which `previous` is; case does not matter. By the index. */
const struct entry *config_file_next_of(const struct config_file *file, enum section_kind kind, struct slice name,
                                        const struct entry *previous);

/* The first entry with this key of sections of this kind, whatever their name; NULL: none. */
const struct entry *config_file_entry(const struct config_file *file, enum section_kind kind, const char *key);

/* The first section of that kind and name; NULL if there is none. */
struct section *config_file_section(const struct config_file *file, enum section_kind kind, struct slice name);

/* The first section of each name of this kind, after `previous` or the first of all; NULL after the last. */
struct section *config_file_next_section(const struct config_file *file, enum section_kind kind,
                                         const struct section *previous);

/* The word that sections of this kind begin with: "weir", "policy". */
struct slice section_word(enum section_kind kind);

/* Report "file:line: [section] key: what"; a path, section or key that is NULL, and line 0, are left out. */
void config_file_say(struct config_file *file, bool is_error, struct place place, const char *section, const char *key,
                     const char *what);

/* "line 3", or if it is in another file than `near`, "line 3 of conf.d/a.conf"; into `out`, which is returned. */
#define PLACE_ROOM 160
const char *place_print(const struct config_file *file, struct place place, struct place near, char out[PLACE_ROOM]);

void section_says(struct config_file *file, bool is_error, const struct section *section, const char *what);
void entry_says(struct config_file *file, bool is_error, const struct entry *entry, const char *what);
void entry_error(struct config_file *file, const struct entry *entry, const char *what);
void section_error(struct config_file *file, const struct section *section, const char *what);

/* Write "unknown key (did you mean workers?)" into `out` of `size` bytes; returns `out`. */
const char *unknown_name(char *out, size_t size, const char *noun, struct slice near);

#endif
