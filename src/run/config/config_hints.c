#include "run/config/config_hints.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/slice.h"
#include "base/why.h"

#define LINE_ROOM 256

/* ---- keys and headings ---- */

static const struct hint {
    enum hint_location location;
    const char *name;
    const char *text;
} hints[] = {
#define HINT(section, name, text) {HINT_IN_##section, name, text},
#include "run/config/config_hints.def"
#undef HINT
};

static size_t config_hints_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The state of writing one message. */
struct hinting {
    enum hint_location location;
    const struct hint_check *check;
    struct slice value; /* value of the wrong line */
    struct slice text;  /* the hint's text before its {X} */
};

/* True if the line that the hint names is accepted with this value instead of {X}. */
static bool is_accepted(const struct hinting *h, struct slice value)
{
    char line[LINE_ROOM];
    size_t key = 0, from = 0, at = 0;
    for (size_t i = 0; i + 3 <= h->text.len; i++)
        if (memcmp(h->text.at + i, " = ", 3) == 0) {
            for (key = i; key > 0 && h->text.at[key - 1] != ' '; key--)
                ;
            at = i;
            from = i + 3;
        } else if (i + 5 <= h->text.len && memcmp(h->text.at + i, ", or ", 5) == 0)
            from = i + 5; /* the second value in "listen = 127.0.0.1:1, or 0.0.0.0:1" */
    int len = snprintf(line, sizeof line, "%.*s%.*s", (int)(h->text.len - from), h->text.at + from,
                       (int)value.len, value.at);
    bool is_of_admin = memmem(h->text.at, h->text.len, "[admin]", 7) != NULL;
    return len > 0 && (size_t)len < sizeof line &&
           h->check->is_accepted(h->check->arg, is_of_admin ? HINT_IN_ADMIN : h->location,
                                 slice_of(h->text.at + key, at - key), slice_str(line));
}

/*
 * Returns the text for {X}. A URL may contain a password and is not repeated. From "r1
 * 10.0.0.1:6379 check" the text is the address.
 */
static struct slice config_hints_shown(const struct hinting *h, struct slice instead)
{
    struct slice rest = h->value, word;
    bool is_url = memmem(h->value.at, h->value.len, "://", 3) != NULL;
    if (h->value.len == 0 || h->value.len > WHY_SHOWN_MAX || is_url)
        return instead;
    if (is_accepted(h, h->value))
        return h->value;
    while (slice_eq(instead, SLICE("HOST:PORT")) && split_word(&rest, &word))
        if (is_accepted(h, word))
            return word;
    return instead;
}

/* Writes "unknown key: write upstream = 10.0.0.1:6379"; truncated if there is no room. */
static void config_hints_tell(struct hinting *h, const char *noun, const char *text, char *out,
                              size_t size)
{
    size_t len = config_hints_least((size_t)snprintf(out, size, "unknown %s: ", noun), size - 1);
    for (const char *at = text; *at != '\0' && len + 1 < size; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end == NULL) {
            out[len++] = *at;
            continue;
        }
        h->text = slice_of(text, (size_t)(at - text));
        struct slice in_text = config_hints_shown(h, slice_of(at + 1, (size_t)(end - at - 1)));
        len = config_hints_least(
            len + (size_t)snprintf(out + len, size - len, "%.*s", WHY_SLICE(in_text)), size - 1);
        at = end;
    }
    out[len] = '\0';
}

/* True if the names are equal, except for case and for '_' or a blank instead of '-'. */
static bool is_same_name(struct slice a, struct slice b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        char c = a.at[i] == '_' || a.at[i] == ' ' ? '-' : ascii_lower(a.at[i]);
        if (c != b.at[i])
            return false;
    }
    return a.len == b.len;
}

bool config_hint_name(enum hint_location location, const struct hint_check *check,
                      struct slice name, struct slice value, struct why why)
{
    struct hinting h = {.location = location, .check = check, .value = value};
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].location == location && is_same_name(name, slice_str(hints[i].name))) {
            config_hints_tell(&h, location == HINT_IN_SECTION ? "section" : "key", hints[i].text,
                              why.out, why.size);
            return true;
        }
    return false;
}

/*
 * Returns the command's name after "cmd" and the separator of other programs: "cmd:get", "cmd_get";
 * else "".
 */
static struct slice command_of(struct slice key, struct slice *value)
{
    if (slice_eq_nocase(key, SLICE("cmd")) || slice_eq_nocase(key, SLICE("command"))) {
        /* "cmd:get = 10/s" is the key "cmd" with the value "get = 10/s" */
        struct slice rest = *value, name;
        if (!split_next(&rest, '=', &name) || rest.at == NULL)
            return SLICE("");
        *value = split_trim(rest);
        return name;
    }
    bool has_word = key.len > 4 && slice_eq_nocase(slice_of(key.at, 3), SLICE("cmd"));
    return has_word && key.at[3] != '\0' && strchr("_- /|", key.at[3]) != NULL
               ? slice_of(key.at + 4, key.len - 4)
               : SLICE("");
}

/*
 * Writes the likely name: "cmd.get" for "cmd:get", "auth-failures" for "auth_failures". False: the
 * key is not known.
 */
static bool respell(struct slice key, struct slice *value, char out[WHY_SHOWN_MAX + 5])
{
    struct slice name = command_of(key, value);
    bool has_change = name.len > 0;
    if (name.len > WHY_SHOWN_MAX || key.len > WHY_SHOWN_MAX)
        return false;
    snprintf(out, WHY_SHOWN_MAX + 5, "%s%.*s", has_change ? "cmd." : "",
             WHY_SLICE(has_change ? name : key));
    for (char *at = out; name.len == 0 && *at != '\0'; at++)
        if (*at == '_') {
            *at = '-';
            has_change = true;
        }
    return has_change;
}

bool config_hint_spelling(const struct hint_check *check, struct slice key, struct slice value,
                          struct why why)
{
    char right[WHY_SHOWN_MAX + 5];
    if (!respell(key, &value, right) ||
        !check->is_accepted(check->arg, HINT_IN_POLICY, slice_str(right), value))
        return false;
    why_refuse(why, "unknown key: write %s = %.*s", right, WHY_SLICE(value));
    return true;
}

/* ---- comments ---- */

bool config_hint_comment(enum hint_location location, const struct hint_check *check,
                         struct slice key, struct slice value, struct why why)
{
    struct slice rest = value, own;
    if (!split_next(&rest, ';', &own) || rest.at == NULL ||
        (rest.len > 0 && !split_is_space(rest.at[0])) ||
        !check->is_accepted(check->arg, location, key, own))
        return false;
    why_refuse(why,
               "a comment after a value begins with a blank and a semicolon: write %.*s = %.*s",
               WHY_SLICE(key), WHY_SLICE(own));
    return true;
}

/* ---- quotes ---- */

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

bool config_hint_quotes(struct slice key, struct slice value, bool is_taken, struct why why)
{
    if (value.len < 2 || !is_quote(value.at[0]) || value.at[value.len - 1] != value.at[0])
        return false;
    struct slice inside = slice_of(value.at + 1, value.len - 2);
    bool is_one = memchr(inside.at, value.at[0], inside.len) == NULL;
    if (is_taken)
        why_refuse(why, "the quotes are part of the value: write %.*s = %.*s without quotes",
                   WHY_SLICE(key), WHY_SLICE(is_one ? inside : SLICE("...")));
    else if (is_one)
        why_refuse(why, "values take no quotes: write %.*s = %.*s", WHY_SLICE(key),
                   WHY_SLICE(inside));
    else
        why_refuse(why, "values take no quotes: remove them");
    return true;
}

/* ---- other formats ---- */

#define HEAD_BYTES 4096

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* True for "key:" or "key: value". */
static bool is_yaml(struct slice line)
{
    size_t len = 0;
    while (len < line.len && is_key_char(line.at[len]))
        len++;
    return len > 0 && len < line.len && line.at[len] == ':' &&
           (len + 1 == line.len || line.at[len + 1] == ' ');
}

/* True for "maxclients 100": a word and its value, without = or : between them. */
static bool is_redis_conf(struct slice line)
{
    size_t len = 0;
    while (len < line.len && is_key_char(line.at[len]))
        len++;
    return len > 0 && len + 1 < line.len && line.at[len] == ' ' && is_key_char(line.at[len + 1]) &&
           memchr(line.at, '=', line.len) == NULL;
}

/* Returns the format of a file with this first line that is no comment; NULL: perhaps INI. */
static const char *format_of(struct slice line)
{
    if (line.at[0] == '{')
        return "JSON";
    if (line.at[0] == '<')
        return "XML";
    bool is_item = line.len > 1 && line.at[0] == '-' && line.at[1] == ' ';
    if (slice_eq(line, SLICE("---")) || line.at[0] == '%' || is_item || is_yaml(line))
        return "YAML";
    if (is_redis_conf(line))
        return "written like redis.conf";
    return NULL;
}

const char *config_hint_format(const char *path, unsigned *line_number)
{
    char head[HEAD_BYTES];
    struct stat status;
    FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;
    if (file == NULL)
        return NULL;
    struct slice rest = slice_of(head, fread(head, 1, sizeof head, file)), line;
    fclose(file);
    for (*line_number = 1; split_next(&rest, '\n', &line); ++*line_number) {
        while (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        if (line.len > 0 && line.at[0] != '#' && line.at[0] != ';')
            return format_of(line);
    }
    return NULL;
}
