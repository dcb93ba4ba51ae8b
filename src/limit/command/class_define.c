/*
 * An operator's class, from the words of its lines.
 *
 * A class never reaches itself through its terms, so every evaluation ends.
 */
#include "limit/command/class.h"

#include "base/choice.h"
#include "base/split.h"
#include "limit/policy/limit.h"
#include "limit/command/term.h"

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

/* Does `from` use `to`, directly or through other classes? */
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

/* A class defined earlier in which `name` was taken for a command, since no class had that name yet; NULL: none. */
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

/* The class of that name, made if need be; NULL: no valid name for a class, or used as a command's already. */
static struct class *class_get(struct classes *classes, struct slice name, struct why why)
{
    struct class *class = classes_lookup(classes, name);
    const struct class *user = class != NULL ? NULL : early_user(classes, name);
    if (!is_class_name(name))
        why_refuse(why, "a class is named with 1 to %d of A-Z a-z 0-9 _ . - and no '-' first", CLASS_NAME_MAX);
    else if (is_taken(name))
        why_refuse(why, "%.*s has a meaning of its own: choose another name for the class", WHY_SLICE(name));
    else if (user != NULL)
        why_refuse(why, "class %.*s is used in class %s, which comes before it: move it up", WHY_SLICE(name),
                   user->name);
    else
        return class != NULL ? class : classes_add(classes, name);
    return NULL;
}

/*
 * A bare word is a class if one of that name is known, else a command. A class may be named after a command it holds:
 * there its own name means the command.
 */
static bool word_term(const struct classes *classes, const struct class *class, struct slice word, struct term *term,
                      struct why why)
{
    const struct class *other = classes_lookup(classes, word);
    if (other != NULL && !(other == class && class_is_command(word))) {
        *term = (struct term){.kind = TERM_CLASS, .class = other};
        return !reaches(other, class) ||
               why_refuse(why, "class %s refers to itself through %s", class->name, other->name);
    }
    if (!term_is_command_name(word) || slice_starts(word, SLICE("@")) || slice_starts(word, SLICE("cmd.")))
        return why_refuse(why, "\"%.*s\" is no command, category or class", WHY_SLICE(word));
    *term = (struct term){.kind = TERM_COMMAND, .is_bare = true, .text = term_text(word)};
    return true;
}

static bool define_term(const struct classes *classes, struct class *class, struct slice text, struct why why)
{
    struct term term;
    bool takes_away = slice_starts(text, SLICE("-"));
    struct slice word = takes_away ? split_trim(slice_after(text, 1)) : text;
    if (word.len == 0)
        return why_refuse(why, "a command, category or class is missing %s", takes_away ? "after '-'" : "in the list");
    if (takes_away && class->n_terms == 0)
        return why_refuse(why, "%.*s takes away from nothing: say first what the class holds", WHY_SLICE(text));
    if (!term_spell(word, &term) && !word_term(classes, class, word, &term, why))
        return false;
    term.takes_away = takes_away;
    class_add_term(class, term);
    return true;
}

/* A class with a bad term stays known, so that only the term is reported, not also everything that uses the class. */
bool class_define(struct classes *classes, struct slice name, struct slice terms, char *why, size_t why_size)
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
