/*
 * A class is a list of terms, evaluated left to right. A built-in class has a single term.
 *
 * A class never reaches itself through its terms: every evaluation ends. Names and texts are stored
 * in lower case.
 */
#include "limit/command/class.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/command/keys.h"
#include "limit/command/own.h"
#include "limit/policy/limit.h"
#include "limit/policy/rate.h"

enum term_kind { TERM_ALL, TERM_FLAG, TERM_CATEGORY, TERM_COMMAND, TERM_CLASS };

struct term {
    enum term_kind kind;
    bool takes_away; /* written with '-': removes from the class */
    /* TERM_COMMAND written without "cmd.": a class may have been meant */
    bool is_bare;
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

static inline struct slice slice_after(struct slice s, size_t n)
{
    return slice_of(s.at + n, s.len - n);
}

static inline bool slice_starts(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && slice_eq_nocase(slice_of(s.at, prefix.len), prefix);
}

/* ---- texts ---- */

/* A lower-case copy, NUL-terminated; the caller frees it with free(). */
static char *term_text(struct slice s)
{
    char *copy = mem_strndup(s.at, s.len);
    for (size_t i = 0; i < s.len; i++)
        copy[i] = ascii_lower(copy[i]);
    return copy;
}

/* True for a possible command name. Names of modules are free-form but never contain spaces. */
static bool term_is_command_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] <= ' ' || s.at[i] > '~')
            return false;
    return s.len > 0 && s.len <= COMMAND_NAME_MAX;
}

/* ---- classes and their terms ---- */

struct slice class_name(const struct class *class)
{
    return slice_str(class->name);
}

/* The class of that name; case does not matter. NULL: none. */
static struct class *classes_lookup(const struct classes *classes, struct slice name)
{
    for (size_t i = 0; i < classes->n; i++)
        if (slice_eq_nocase(class_name(classes->at[i]), name))
            return classes->at[i];
    return NULL;
}

/* Adds a class without terms. */
static struct class *classes_add(struct classes *classes, struct slice name)
{
    struct class *class = mem_zalloc(1, sizeof *class);
    class->name = term_text(name);
    classes->at = mem_realloc(classes->at, classes->n + 1, sizeof(struct class *));
    classes->at[classes->n++] = class;
    return class;
}

static void class_free(struct class *class)
{
    for (size_t i = 0; i < class->n_terms; i++)
        free(class->terms[i].text);
    free(class->terms);
    free(class->name);
    free(class);
}

/* Adds a term; takes ownership of term.text. */
static void class_add_term(struct class *class, struct term term)
{
    class->terms = mem_realloc(class->terms, class->n_terms + 1, sizeof term);
    class->terms[class->n_terms++] = term;
}

struct classes *classes_new(void)
{
    struct classes *classes = mem_zalloc(1, sizeof *classes);
    class_add_term(classes_add(classes, SLICE("all")), (struct term){.kind = TERM_ALL});
    class_add_term(classes_add(classes, SLICE("read")),
                   (struct term){.kind = TERM_FLAG, .flag = CMD_READONLY});
    class_add_term(classes_add(classes, SLICE("write")),
                   (struct term){.kind = TERM_FLAG, .flag = CMD_WRITE});
    class_add_term(classes_add(classes, SLICE("control")),
                   (struct term){.kind = TERM_FLAG, .flag = CMD_CONTROL});
    return classes;
}

void classes_free(struct classes *classes)
{
    if (classes == NULL)
        return;
    for (size_t i = 0; i < classes->n; i++)
        class_free(classes->at[i]);
    free(classes->at);
    free(classes);
}

/* True if Redis 7 has a command of that name. */
static bool class_is_command(struct slice name)
{
    return command_by_name(command_table_known(), name) != NULL;
}

size_t classes_count(const struct classes *classes)
{
    return classes->n;
}

const struct class *classes_at(const struct classes *classes, size_t i)
{
    return classes->at[i];
}

bool class_is_builtin(const struct class *class)
{
    return class->n_terms == 1 &&
           (class->terms[0].kind == TERM_ALL || class->terms[0].kind == TERM_FLAG);
}

/* ---- finding ---- */

/* Parses "@category" or "cmd.name". False: `text` is neither, or malformed. */
static bool term_spell(struct slice text, struct term *term)
{
    if (slice_starts(text, SLICE("@")) && term_is_command_name(slice_after(text, 1)))
        *term = (struct term){.kind = TERM_CATEGORY, .text = term_text(slice_after(text, 1))};
    else if (slice_starts(text, SLICE("cmd.")) && term_is_command_name(slice_after(text, 4)))
        *term = (struct term){.kind = TERM_COMMAND, .text = term_text(slice_after(text, 4))};
    else
        return false;
    return true;
}

static struct slice class_name_at(const void *arg, size_t i)
{
    const struct classes *classes = arg;
    return class_name(classes->at[i]);
}

static bool refuse_unknown(const struct classes *classes, struct slice text, struct why why)
{
    if (class_is_command(text))
        return why_refuse(why, "%.*s is a command, not a class (did you mean cmd.%.*s?)",
                          WHY_SLICE(text), WHY_SLICE(text));
    struct slice near = near_name(text, classes->n, class_name_at, classes);
    if (near.len > 0)
        return why_refuse(why, "unknown class %.*s (did you mean %.*s?)", WHY_SLICE(text),
                          WHY_SLICE(near));
    return why_refuse(why, "unknown class %.*s", WHY_SLICE(text));
}

const struct class *class_find(struct classes *classes, struct slice text, char *why,
                               size_t why_size)
{
    struct term term;
    struct class *class = classes_lookup(classes, text);
    if (class != NULL)
        return class;
    if (!term_spell(text, &term)) {
        refuse_unknown(classes, text, (struct why){why, why_size});
        return NULL;
    }
    class = classes_add(classes, text);
    class_add_term(class, term);
    return class;
}

/* ---- membership ---- */

/* The bit of the category; 0: the table has no such category. */
static uint64_t class_category_bit(const struct command_table *table, struct slice name)
{
    for (size_t bit = 0; bit < command_table_categories(table); bit++)
        if (slice_eq_nocase(command_table_category(table, bit), name))
            return UINT64_C(1) << bit;
    return 0;
}

/* True if `name` is the name of the command or of its container. */
static bool class_is_named(const struct command *command, struct slice name)
{
    struct slice own = slice_of(command->name, command->name_len);
    return slice_starts(own, name) && (own.len == name.len || own.at[name.len] == '|');
}

static bool term_has(const struct term *term, const struct command_table *table,
                     const struct command *command)
{
    switch (term->kind) {
    case TERM_ALL:
        return true;
    case TERM_FLAG:
        return command->flags & term->flag;
    case TERM_CATEGORY:
        return command->categories & class_category_bit(table, slice_str(term->text));
    case TERM_COMMAND:
        return class_is_named(command, slice_str(term->text));
    case TERM_CLASS:
        return class_has(term->class, table, command);
    }
    return false;
}

bool class_has(const struct class *class, const struct command_table *table,
               const struct command *command)
{
    bool has = false;
    for (size_t i = 0; i < class->n_terms; i++)
        if (term_has(&class->terms[i], table, command))
            has = !class->terms[i].takes_away;
    return has;
}

/* Row 0, which stands for unknown commands, is skipped. */
bool class_is_control(const struct class *class, const struct command_table *table)
{
    bool has_any = false;
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *command = command_table_row(table, id);
        if (!class_has(class, table, command))
            continue;
        if (!(command->flags & CMD_CONTROL))
            return false;
        has_any = true;
    }
    return has_any;
}

/* ---- checking ---- */

struct check {
    const struct classes *classes;
    const struct command_table *table;
    void (*warn)(void *arg, struct slice class, struct slice unknown, struct slice near);
    void *arg;
};

static struct slice category_at(const void *arg, size_t i)
{
    return command_table_category(arg, i);
}

static struct slice command_at(const void *arg, size_t i)
{
    const struct command *row = command_table_row(arg, i);
    return slice_of(row->name, row->name_len);
}

static struct slice class_or_command_at(const void *arg, size_t i)
{
    const struct check *check = arg;
    size_t n = check->classes->n;
    return i < n ? class_name_at(check->classes, i) : command_at(check->table, i - n);
}

/* The category as written in a class: "@slow". `out` must have room for the text. */
static struct slice with_at(char *out, struct slice category)
{
    out[0] = '@';
    memcpy(out + 1, category.at, category.len);
    return slice_of(out, category.len + 1);
}

static void check_category(const struct check *check, struct slice class, struct slice name)
{
    char room[2][COMMAND_NAME_MAX + 1];
    if (class_category_bit(check->table, name))
        return;
    struct slice near =
        near_name(name, command_table_categories(check->table), category_at, check->table);
    if (near.len > 0)
        near = with_at(room[0], near);
    check->warn(check->arg, class, with_at(room[1], name), near);
}

static void check_command(const struct check *check, struct slice class, const struct term *term)
{
    struct slice name = slice_str(term->text);
    size_t n = command_table_count(check->table);
    if (command_by_name(check->table, name) != NULL)
        return;
    struct slice near = term->is_bare
                            ? near_name(name, check->classes->n + n, class_or_command_at, check)
                            : near_name(name, n, command_at, check->table);
    check->warn(check->arg, class, name, near);
}

void classes_check(const struct classes *classes, const struct command_table *table,
                   void (*warn)(void *arg, struct slice class, struct slice unknown,
                                struct slice near),
                   void *arg)
{
    struct check check = {classes, table, warn, arg};
    for (size_t i = 0; i < classes->n; i++)
        for (size_t j = 0; j < classes->at[i]->n_terms; j++) {
            const struct term *term = &classes->at[i]->terms[j];
            if (term->kind == TERM_CATEGORY)
                check_category(&check, class_name(classes->at[i]), slice_str(term->text));
            if (term->kind == TERM_COMMAND)
                check_command(&check, class_name(classes->at[i]), term);
        }
}

#define CLASS_NAME_MAX 32

static bool is_class_name(struct slice s)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    for (size_t i = 0; i < s.len; i++)
        if (memchr(legal, s.at[i], sizeof legal - 1) == NULL)
            return false;
    return s.len > 0 && s.len <= CLASS_NAME_MAX && s.at[0] != '-';
}

/* ---- defining ---- */

/* True if `from` uses `to`, directly or through other classes. */
static bool reaches(const struct class *from, const struct class *to)
{
    if (from == to)
        return true;
    for (size_t i = 0; i < from->n_terms; i++)
        if (from->terms[i].kind == TERM_CLASS && reaches(from->terms[i].class, to))
            return true;
    return false;
}

static bool is_taken(struct slice name)
{
    static const char *const taken[] = {"all", "read", "write", "control", "match", "admin", NULL};
    return taken[choice_find(taken, name)] != NULL || unit_find(name) != UNIT_COMMANDS ||
           slice_starts(name, SLICE("cmd."));
}

/*
 * An earlier class in which `name` was taken for a command, since no class had that name yet; NULL:
 * none.
 */
static const struct class *early_user(const struct classes *classes, struct slice name)
{
    if (class_is_command(name))
        return NULL;
    for (size_t i = 0; i < classes->n; i++)
        for (size_t j = 0; j < classes->at[i]->n_terms; j++) {
            const struct term *term = &classes->at[i]->terms[j];
            if (term->is_bare && slice_eq_nocase(slice_str(term->text), name))
                return classes->at[i];
        }
    return NULL;
}

/*
 * Finds or makes the class of that name. NULL: the name is not valid, or an earlier class uses the
 * name as a command's.
 */
static struct class *class_get(struct classes *classes, struct slice name, struct why why)
{
    struct class *class = classes_lookup(classes, name);
    const struct class *user = class != NULL ? NULL : early_user(classes, name);
    if (!is_class_name(name))
        why_refuse(
            why,
            "a class name has 1 to %d characters of A-Z a-z 0-9 _ . -, and does not begin with "
            "'-'",
            CLASS_NAME_MAX);
    else if (is_taken(name))
        why_refuse(why, "%.*s is reserved: choose another name for the class", WHY_SLICE(name));
    else if (user != NULL)
        why_refuse(why, "class %.*s is used in class %s, which comes before it: move it up",
                   WHY_SLICE(name), user->name);
    else
        return class != NULL ? class : classes_add(classes, name);
    return NULL;
}

/*
 * A bare word is a known class, otherwise a command. A class may have the name of a command that it
 * contains: within that class the name means the command.
 */
static bool word_term(const struct classes *classes, const struct class *class, struct slice word,
                      struct term *term, struct why why)
{
    const struct class *other = classes_lookup(classes, word);
    if (other != NULL && !(other == class && class_is_command(word))) {
        *term = (struct term){.kind = TERM_CLASS, .class = other};
        return !reaches(other, class) ||
               why_refuse(why, "class %s refers to itself through %s", class->name, other->name);
    }
    if (!term_is_command_name(word) || slice_starts(word, SLICE("@")) ||
        slice_starts(word, SLICE("cmd.")))
        return why_refuse(why, "\"%.*s\" is not a command, category or class", WHY_SLICE(word));
    *term = (struct term){.kind = TERM_COMMAND, .is_bare = true, .text = term_text(word)};
    return true;
}

static bool define_term(const struct classes *classes, struct class *class, struct slice text,
                        struct why why)
{
    struct term term;
    bool takes_away = slice_starts(text, SLICE("-"));
    struct slice word = takes_away ? split_trim(slice_after(text, 1)) : text;
    if (word.len == 0)
        return why_refuse(why, "a command, category or class is missing %s",
                          takes_away ? "after '-'" : "in the list");
    if (takes_away && class->n_terms == 0)
        return why_refuse(why, "%.*s has nothing to remove: list first what the class contains",
                          WHY_SLICE(text));
    if (!term_spell(word, &term) && !word_term(classes, class, word, &term, why))
        return false;
    term.takes_away = takes_away;
    class_add_term(class, term);
    return true;
}

/* A class with a bad term stays known: otherwise every use of the class would be reported too. */
bool class_define(struct classes *classes, struct slice name, struct slice terms, char *why,
                  size_t why_size)
{
    struct why reason = {why, why_size};
    struct class *class = class_get(classes, name, reason);
    if (class == NULL)
        return false;
    struct slice text;
    struct slice rest = terms.at != NULL ? terms : SLICE("");
    while (split_next(&rest, ',', &text))
        if (!define_term(classes, class, text, reason))
            return false;
    return true;
}

/* ---- members ---- */

struct members {
    const struct classes *classes;
    const struct command_table *table;
    bool **of; /* by the number of the class, then by command id; NULL: not computed yet */
};

struct members *members_new(const struct classes *classes, const struct command_table *table)
{
    struct members *members = mem_zalloc(1, sizeof *members);
    members->classes = classes;
    members->table = table;
    members->of = mem_zalloc(classes_count(classes), sizeof *members->of);
    return members;
}

void members_free(struct members *members)
{
    for (size_t i = 0; i < classes_count(members->classes); i++)
        free(members->of[i]);
    free(members->of);
    free(members);
}

static bool *class_look_up(const struct members *members, const struct class *class)
{
    size_t n = command_table_count(members->table);
    bool *of = mem_zalloc(n, sizeof *of);
    for (size_t id = 0; id < n; id++)
        of[id] = class_has(class, members->table, command_table_row(members->table, id));
    return of;
}

const bool *members_of(struct members *members, const struct class *class)
{
    size_t number = 0;
    while (classes_at(members->classes, number) != class)
        number++;
    if (members->of[number] == NULL)
        members->of[number] = class_look_up(members, class);
    return members->of[number];
}

const struct classes *members_classes(const struct members *members)
{
    return members->classes;
}

const struct command_table *members_table(const struct members *members)
{
    return members->table;
}

/* ---- the lines of [cost] ---- */

/* The factor by which the units of a line are multiplied. */
enum cost_per { PER_CALL, PER_KEY, PER_COST, COST_PERS };
static const char *const cost_pers[COST_PERS] = {"", "per key", "per cost"};

/* A line of [cost]. */
struct cost {
    const struct class *class;
    uint32_t units;
    uint8_t per; /* enum cost_per */
};

/* Parses "100", "2 per key", "1 per cost". */
static bool parse_cost(struct slice text, struct cost *cost, char *why, size_t why_size)
{
    struct slice word;
    uint64_t units;
    if (!split_word(&text, &word) || !rate_parse_count(word, &units, why, why_size))
        return word.len > 0 ? false
                            : why_set(why, why_size, "a cost is missing: write 100, or 1 per key");
    if (units == 0 || units > UINT32_MAX)
        return why_set(why, why_size, "a cost is from 1 to %u", UINT32_MAX);
    text = split_trim(text);
    cost->units = (uint32_t)units;
    while (cost->per < COST_PERS && !slice_eq_nocase(text, slice_str(cost_pers[cost->per])))
        cost->per++;
    return cost->per < COST_PERS ||
           why_set(
               why, why_size,
               "\"%.*s\" is not a cost: write a number, or a number and \"per key\" or \"per cost\"",
               WHY_SLICE(text));
}

/* The class of `what`. A command takes precedence over a class of the same name. */
static const struct class *costly(struct classes *classes, const struct command_table *known,
                                  struct slice what, char *why, size_t why_size)
{
    char text[COMMAND_NAME_MAX + sizeof "cmd."];
    if (what.len > COMMAND_NAME_MAX || command_by_name(known, what) == NULL)
        return class_find(classes, what, why, why_size);
    int len = snprintf(text, sizeof text, "cmd.%.*s", (int)what.len, what.at);
    return class_find(classes, slice_of(text, (size_t)len), why, why_size);
}

bool costs_add(struct costs *costs, struct classes *classes, const struct command_table *table,
               struct slice what, struct slice cost, char *why, size_t why_size)
{
    struct cost parsed = {.class = costly(classes, table, what, why, why_size)};
    if (parsed.class == NULL || !parse_cost(cost, &parsed, why, why_size))
        return false;
    if (costs->n == UINT16_MAX - 1)
        return why_set(why, why_size, "too many costs: at most %zu", costs->n);
    costs->at = mem_realloc(costs->at, costs->n + 1, sizeof parsed);
    costs->at[costs->n++] = parsed;
    return true;
}

void costs_bind(struct costs *costs, const struct command_table *table)
{
    free(costs->of);
    costs->n_of = costs->n > 0 ? command_table_count(table) : 0;
    costs->of = mem_zalloc(costs->n_of, sizeof *costs->of);
    for (size_t id = 0; id < costs->n_of; id++)
        for (size_t i = 0; i < costs->n; i++)
            if (class_has(costs->at[i].class, table, command_table_row(table, id)))
                costs->of[id] = (uint16_t)(i + 1);
}

void costs_fini(struct costs *costs, bool is_owner)
{
    free(costs->of);
    if (is_owner)
        free(costs->at);
}

static uint64_t cost_times(const struct cost *cost, const struct command *command,
                           struct slice request, uint32_t argc)
{
    if (cost->per == PER_KEY)
        return keys_most(command, request, argc);
    return cost->per == PER_COST && command->own > 0
               ? own_units(own_row(command->own - 1U), request)
               : 1;
}

uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request,
                     uint32_t argc)
{
    uint16_t at = command->id < costs->n_of ? costs->of[command->id] : 0;
    if (at == 0)
        return 1;
    const struct cost *cost = &costs->at[at - 1];
    uint64_t n = cost_times(cost, command, request, argc), units;
    bool is_beyond =
        __builtin_mul_overflow(cost->units, n > 0 ? n : 1, &units) || units > INT64_MAX;
    return is_beyond ? INT64_MAX : units;
}
