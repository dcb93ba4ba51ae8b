/*
 * A configuration file before it is interpreted: its sections and entries with their line numbers.
 * Also reports errors in sections and entries.
 */
#ifndef WEIR_RUN_CONFIG_FILE_H
#define WEIR_RUN_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/slice.h"

#define CONFIG_WHY_ROOM 320 /* bytes of a message about one line */

enum section_kind {
    SECTION_BAD,
    SECTION_WEIR,
    SECTION_CLASS,
    SECTION_POLICY,
    SECTION_COST,
    SECTION_ADMIN,
    SECTION_LIMIT
};

/* A position in a file. */
struct location {
    unsigned line; /* 0: none */
    unsigned file; /* index of config_file.sources */
};

struct section {
    enum section_kind kind;
    struct location location;
    char *title;       /* as written between the brackets */
    struct slice name; /* part of title: the text after "class" or "policy" */
    bool is_done;      /* the class is defined, or its error has been reported */
    /* index of the first section of this kind and name; set by config_file_index */
    size_t first;
    /*
     * set only in the first section of this kind and name: first and last entry of all sections
     * of this kind and name, as index plus one; 0: none
     */
    size_t head, tail;
};

struct entry {
    struct location location;
    size_t section; /* index */
    /* index plus one of the next entry in sections of this kind and name; 0: none */
    size_t next;
    char *key;
    char *value;
    char *raw; /* the value as written, if it has variables (config_variable.h); else NULL */
    /* the variables cannot be expanded, which is reported: no more errors about this entry */
    bool is_unusable;
};

/* A file that is or has been read. */
struct source {
    char *path;
    struct location from; /* the line that includes this file; line 0 for the first file */
    dev_t device;         /* device and inode identify the file */
    ino_t inode;
};

struct config_file {
    const char *path; /* NULL: no file; errors are then reported without a position */
    void (*report)(void *arg, bool is_error, const char *line);
    void *arg;
    unsigned n_errors;
    struct section *sections;
    size_t n_sections;
    struct entry *entries;
    size_t n_entries;
    size_t *table; /* hash table by kind and name: index plus one of the first section; 0: free */
    size_t n_table;
    struct source *sources; /* the file itself, then included files in the order of reading */
    unsigned n_sources;
};

/*
 * Reads all of file->path. Reads an included file in place of the line that names the file. Reports
 * bad lines and unknown sections. The caller sets path, report and arg.
 */
void config_file_read(struct config_file *file);
void config_file_fini(struct config_file *file);

/* Builds the index of sections and entries. To be called after each change of the lists. */
void config_file_index(struct config_file *file);

/* Returns the present size in bytes of all files that were read. */
size_t config_file_bytes(const struct config_file *file);

/*
 * Returns the next entry of a section of this kind, after `previous` (NULL: from the beginning);
 * NULL after the last.
 */
const struct entry *config_file_next(const struct config_file *file, enum section_kind kind,
                                     const struct entry *previous);

/*
 * As config_file_next, only for sections of this name, from the index. `previous` must be an entry
 * of these sections. Case does not matter.
 */
const struct entry *config_file_next_of(const struct config_file *file, enum section_kind kind,
                                        struct slice name, const struct entry *previous);

/* Returns the first entry with this key in sections of this kind and any name; NULL: none. */
const struct entry *config_file_entry(const struct config_file *file, enum section_kind kind,
                                      const char *key);

/* Returns the first section of that kind and name; NULL: none. */
struct section *config_file_section(const struct config_file *file, enum section_kind kind,
                                    struct slice name);

/*
 * Returns the first section of each name of this kind, after `previous` (NULL: from the beginning);
 * NULL after the last.
 */
struct section *config_file_next_section(const struct config_file *file, enum section_kind kind,
                                         const struct section *previous);

/* Returns the word that headings of this kind begin with: "weir", "policy". */
struct slice section_word(enum section_kind kind);

/*
 * Reports "file:line: [section] key: what". A path, section or key that is NULL, and line 0, are
 * left out.
 */
void config_file_say(struct config_file *file, bool is_error, struct location location,
                     const char *section, const char *key, const char *what);

/*
 * Prints "line 3", or if `location` is in another file than `near`, "line 3 of conf.d/a.conf".
 * Returns `out`.
 */
#define LOCATION_ROOM 160
const char *location_print(const struct config_file *file, struct location location,
                           struct location near, char out[LOCATION_ROOM]);

void section_says(struct config_file *file, bool is_error, const struct section *section,
                  const char *what);
void entry_says(struct config_file *file, bool is_error, const struct entry *entry,
                const char *what);
void entry_error(struct config_file *file, const struct entry *entry, const char *what);
void section_error(struct config_file *file, const struct section *section, const char *what);

/* Writes "unknown key (did you mean workers?)" into `out` of `size` bytes. Returns `out`. */
const char *unknown_name(char *out, size_t size, const char *noun, struct slice near);

#endif
