/*
 * The inside of a class, for class.c and class_define.c only: a list of terms, evaluated left to right; a built-in
 * class has a single term.
 */
#ifndef WEIR_LIMIT_TERM_H
#define WEIR_LIMIT_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/why.h"

enum term_kind { TERM_ALL, TERM_FLAG, TERM_CATEGORY, TERM_COMMAND, TERM_CLASS };

struct term {
    enum term_kind kind;
    bool takes_away;           /* written with '-' */
    bool is_bare;              /* TERM_COMMAND: written without "cmd.", so a class may have been meant */
    uint16_t flag;             /* TERM_FLAG */
    char *text;                /* TERM_CATEGORY without the '@', TERM_COMMAND */
    const struct class *class; /* TERM_CLASS */
};

struct class
{
    char *name;
    struct term *terms;
    size_t n_terms;
};

struct classes {
    struct class **at;
    size_t n;
};

/* The class of that name; case does not matter. NULL: none. */
struct class *classes_lookup(const struct classes *classes, struct slice name);

/* A new class without terms. */
struct class *classes_add(struct classes *classes, struct slice name);

/* Is it a command of Redis 7? */
bool class_is_command(struct slice name);

/* The class takes over term.text. */
void class_add_term(struct class *class, struct term term);

/* Parse "@category" or "cmd.name". False: `text` is neither, or is malformed. */
bool term_spell(struct slice text, struct term *term);

/* Could a command have this name? */
bool term_is_command_name(struct slice name);

/* A lower-case copy, NUL-terminated; freed with free(). */
char *term_text(struct slice text);

static inline struct slice slice_after(struct slice s, size_t n)
{
    return slice_of(s.at + n, s.len - n);
}

static inline bool slice_starts(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && slice_eq_nocase(slice_of(s.at, prefix.len), prefix);
}

#endif
