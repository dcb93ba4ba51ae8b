#include "run/config_hints.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/split.h"
#include "base/why.h"

/* ---- keys and headings ---- */

static const struct hint {
    enum hint_place place;
    const char *name;
    const char *text;
} hints[] = {
#define HINT(section, name, text) {HINT_IN_##section, name, text},
#include "run/config_hints.def"
#undef HINT
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What stands for $. A URL may hold a password, and is not repeated. */
static struct slice shown(struct slice value)
{
    if (value.len == 0)
        return SLICE("...");
    return memmem(value.at, value.len, "://", 3) != NULL ? SLICE("HOST:PORT") : value;
}

/* "unknown key: write upstream = 10.0.0.1:6379"; cut if there is no room. */
static bool tell(const char *noun, const char *text, struct slice value, char *out, size_t size)
{
    struct slice in_text = shown(value);
    size_t len = least((size_t)snprintf(out, size, "unknown %s: ", noun), size - 1);
    for (; *text != '\0' && len + 1 < size; text++) {
        if (*text == '$')
            len = least(len + (size_t)snprintf(out + len, size - len, "%.*s", WHY_SLICE(in_text)), size - 1);
        else
            out[len++] = *text;
    }
    out[len] = '\0';
    return true;
}

bool config_hint_name(enum hint_place place, struct slice name, struct slice value, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].place == place && slice_eq_nocase(name, slice_str(hints[i].name)))
            return tell(place == HINT_IN_SECTION ? "section" : "key", hints[i].text, value, why, why_size);
    return false;
}

/* ---- quotes ---- */

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

bool config_hint_quotes(struct slice key, struct slice value, bool is_taken, char *why, size_t why_size)
{
    if (value.len < 2 || !is_quote(value.at[0]) || value.at[value.len - 1] != value.at[0])
        return false;
    struct slice inside = slice_of(value.at + 1, value.len - 2);
    bool is_one = memchr(inside.at, value.at[0], inside.len) == NULL;
    if (is_taken)
        why_set(why, why_size, "the quotes are a part of the value: write %.*s = %.*s without them", WHY_SLICE(key),
                WHY_SLICE(is_one ? inside : SLICE("...")));
    else if (is_one)
        why_set(why, why_size, "a value stands without quotes: write %.*s = %.*s", WHY_SLICE(key), WHY_SLICE(inside));
    else
        why_set(why, why_size, "values stand without quotes: take them out");
    return true;
}

/* ---- other formats ---- */

#define HEAD_BYTES 4096

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

/* "key:" or "key: value" */
static bool is_yaml(struct slice line)
{
    size_t len = 0;
    while (len < line.len && is_key_char(line.at[len]))
        len++;
    return len > 0 && len < line.len && line.at[len] == ':' && (len + 1 == line.len || line.at[len + 1] == ' ');
}

/* "maxclients 100": a word and its value, with neither = nor : between them. */
static bool is_redis_conf(struct slice line)
{
    size_t len = 0;
    while (len < line.len && is_key_char(line.at[len]))
        len++;
    return len > 0 && len + 1 < line.len && line.at[len] == ' ' && is_key_char(line.at[len + 1]) &&
           memchr(line.at, '=', line.len) == NULL;
}

/* What a file is that begins with this line, which is no comment. */
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
