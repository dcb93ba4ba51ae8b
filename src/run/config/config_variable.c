#include "run/config/config_variable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/why.h"

#define NAME_MAX_BYTES 255
#define SHOWN_LEAST 4  /* bytes: fewer tell nothing, and occur in any text */
#define DIGITS_LEAST 8 /* a number of fewer digits is no secret, and occurs in messages anyway */

/* ---- finding ---- */

struct reference {
    struct slice name;
    struct slice otherwise; /* the text after ":-"; `at` NULL: no default */
    const char *end;        /* after the } */
};

enum found { FOUND_NONE, FOUND_BRACE, FOUND_VARIABLE, FOUND_BAD };

static const char *opening(struct slice text)
{
    return text.len < 2 ? NULL : memmem(text.at, text.len, "${", 2);
}

bool config_has_variable(struct slice text)
{
    return opening(text) != NULL;
}

static bool config_variable_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = ascii_lower(name.at[i]);
        bool is_digit = c >= '0' && c <= '9';
        if (!(c >= 'a' && c <= 'z') && c != '_' && !(is_digit && i > 0))
            return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_BYTES;
}

/* Takes the next $${ or ${...} off *rest. *before: the text before it, or all of the text. */
static enum found next_reference(struct slice *rest, struct slice *before, struct reference *found,
                                 struct why why)
{
    const char *open = opening(*rest), *end = rest->at + rest->len;
    *before = *rest;
    if (open == NULL)
        return FOUND_NONE;
    *rest = slice_of(open + 2, (size_t)(end - open) - 2);
    before->len = (size_t)(open - before->at);
    if (before->len > 0 && open[-1] == '$') {
        before->len--;
        return FOUND_BRACE;
    }
    const char *close = memchr(rest->at, '}', rest->len);
    if (close == NULL) {
        why_refuse(why, "the } of ${ is missing; write $${ for ${ itself");
        return FOUND_BAD;
    }
    struct slice inside = slice_of(rest->at, (size_t)(close - rest->at));
    const char *mark = inside.len < 2 ? NULL : memmem(inside.at, inside.len, ":-", 2);
    *found = (struct reference){.name = inside, .end = close + 1};
    if (mark != NULL) {
        found->name.len = (size_t)(mark - inside.at);
        found->otherwise = slice_of(mark + 2, (size_t)(close - mark) - 2);
    }
    *rest = slice_of(found->end, (size_t)(end - found->end));
    if (config_variable_is_name(found->name))
        return FOUND_VARIABLE;
    why_refuse(
        why,
        "\"%.*s\" is not the name of a variable: write ${NAME} or ${NAME:-default}; write $${ for ${ "
        "itself",
        WHY_SLICE(found->name));
    return FOUND_BAD;
}

/* Returns the variable's value in the environment. NULL: not set, or empty and with a default. */
static const char *config_variable_held(const struct reference *reference)
{
    char name[NAME_MAX_BYTES + 1];
    memcpy(name, reference->name.at, reference->name.len);
    name[reference->name.len] = '\0';
    const char *value = getenv(name);
    return value != NULL && (*value != '\0' || reference->otherwise.at == NULL) ? value : NULL;
}

/* ---- expanding ---- */

struct expansion {
    char *at; /* heap, with a NUL */
    size_t len;
};

static bool config_variable_add(struct expansion *e, struct slice piece, struct why why)
{
    if (e->len + piece.len > CONFIG_EXPANDED_MAX)
        return why_refuse(why, "is longer than %d bytes with the values of its variables",
                          CONFIG_EXPANDED_MAX);
    e->at = mem_realloc(e->at, e->len + piece.len + 1, 1);
    if (piece.len > 0)
        memcpy(e->at + e->len, piece.at, piece.len);
    e->len += piece.len;
    e->at[e->len] = '\0';
    return true;
}

static bool add_variable(struct expansion *e, const struct reference *reference, struct why why)
{
    const char *value = config_variable_held(reference);
    if (value == NULL && reference->otherwise.at == NULL)
        return why_refuse(
            why, "${%.*s} is not set in the environment: set it, or write ${%.*s:-default}",
            WHY_SLICE(reference->name), WHY_SLICE(reference->name));
    struct slice text = value != NULL ? slice_str(value) : reference->otherwise;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return why_refuse(why, "${%.*s} holds a control character (0x%02x)",
                              WHY_SLICE(reference->name), c);
    }
    return config_variable_add(e, text, why);
}

bool config_expand(struct slice text, char **out, struct why why)
{
    struct expansion e = {0};
    struct slice rest = text, before;
    struct reference reference;
    bool is_good = true;
    enum found found = FOUND_VARIABLE;
    while (is_good && found != FOUND_NONE) {
        found = next_reference(&rest, &before, &reference, why);
        is_good = found != FOUND_BAD && config_variable_add(&e, before, why);
        if (is_good && found == FOUND_BRACE)
            is_good = config_variable_add(&e, SLICE("${"), why);
        else if (is_good && found == FOUND_VARIABLE)
            is_good = add_variable(&e, &reference, why);
    }
    if (!is_good) {
        free(e.at);
        return false;
    }
    *out = e.at;
    return true;
}

/* ---- hiding ---- */

struct writer {
    char *out;
    size_t room, len;
};

static void config_variable_put(struct writer *w, struct slice piece)
{
    for (size_t i = 0; i < piece.len && w->len + 1 < w->room; i++)
        w->out[w->len++] = piece.at[i];
    w->out[w->len] = '\0';
}

/* Returns the length of the longest beginning of `text` that occurs in `value`. */
static size_t common(struct slice text, struct slice value)
{
    size_t most = 0;
    for (size_t i = 0; i < value.len; i++) {
        size_t n = 0;
        while (n < text.len && i + n < value.len && text.at[n] == value.at[i + n])
            n++;
        most = n > most ? n : most;
    }
    return most;
}

static bool may_be_shown(struct slice value)
{
    size_t digits = 0;
    while (digits < value.len && value.at[digits] >= '0' && value.at[digits] <= '9')
        digits++;
    return value.len < SHOWN_LEAST || (digits == value.len && digits < DIGITS_LEAST);
}

static void hide_value(struct writer *w, struct slice message, struct slice name,
                       struct slice value)
{
    while (message.len > 0) {
        size_t n = may_be_shown(value) ? 0 : common(message, value);
        if (n >= SHOWN_LEAST) {
            config_variable_put(w, SLICE("${"));
            config_variable_put(w, name);
            config_variable_put(w, SLICE("}"));
        } else {
            n = 1;
            config_variable_put(w, slice_of(message.at, 1));
        }
        message = slice_of(message.at + n, message.len - n);
    }
}

/* Replaces each quoted piece that is not part of `text` by `text`. */
static void hide_quoted(struct writer *w, struct slice message, struct slice text)
{
    const char *open, *close;
    while (message.len > 0 && (open = memchr(message.at, '"', message.len)) != NULL) {
        size_t before = (size_t)(open - message.at) + 1;
        config_variable_put(w, slice_of(message.at, before));
        message = slice_of(message.at + before, message.len - before);
        if (message.len == 0 || (close = memchr(message.at, '"', message.len)) == NULL)
            break;
        size_t inside = (size_t)(close - message.at);
        bool is_written = memmem(text.at, text.len, message.at, inside) != NULL;
        config_variable_put(w, is_written ? slice_of(message.at, inside) : text);
        config_variable_put(w, SLICE("\""));
        message = slice_of(close + 1, message.len - inside - 1);
    }
    config_variable_put(w, message);
}

void config_hide(struct slice text, const char *message, char *out, size_t size)
{
    struct slice rest = text, before;
    struct reference reference;
    enum found found;
    char unused[WHY_SHOWN_MAX];
    char *hidden = mem_alloc(size);
    hide_quoted(&(struct writer){out, size, 0}, slice_str(message), text);
    do {
        found = next_reference(&rest, &before, &reference, (struct why){unused, sizeof unused});
        const char *value = found == FOUND_VARIABLE ? config_variable_held(&reference) : NULL;
        if (value == NULL)
            continue;
        snprintf(hidden, size, "%s", out);
        hide_value(&(struct writer){out, size, 0}, slice_str(hidden), reference.name,
                   slice_str(value));
    } while (found == FOUND_BRACE || found == FOUND_VARIABLE);
    free(hidden);
}
