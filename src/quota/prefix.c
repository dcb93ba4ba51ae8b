#include "quota/prefix.h"

#include <string.h>

#include "base/why.h"

/* True if a name is written with this byte unescaped. */
static bool prefix_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

/* Returns the meaning of a '%' at text[i]: 'u', '%', or 0 if it has none. */
static char meaning(struct slice text, size_t i)
{
    char c = i + 1 < text.len ? text.at[i + 1] : '\0';
    return c == 'u' || c == '%' ? c : '\0';
}

static bool check_user(struct slice text, size_t i, char *why, size_t why_size)
{
    if (i == 0)
        return why_set(why, why_size,
                       "nothing precedes %%u: start with a common prefix, like limit:%%u:");
    return (i + 2 < text.len && !prefix_is_plain(text.at[i + 2]) && text.at[i + 2] != '%') ||
           why_set(why, why_size, "a separator must follow %%u, like limit:%%u:");
}

bool prefix_check(struct slice text, char *why, size_t why_size)
{
    bool has_user = false;
    if (text.len > PREFIX_MAX)
        return why_set(why, why_size, "at most %d bytes", PREFIX_MAX);
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '%')
            continue;
        char c = meaning(text, i);
        if (c == '\0')
            return why_set(
                why, why_size,
                "a single %% is invalid: write %%u for the user's name, or %%%% for a %%");
        if (c == 'u' && has_user)
            return why_set(why, why_size, "%%u is given twice");
        if (c == 'u' && !check_user(text, i, why, why_size))
            return false;
        has_user = has_user || c == 'u';
        i++;
    }
    return true;
}

static char *put_user(char *at, struct slice user)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < user.len; i++) {
        unsigned char c = (unsigned char)user.at[i];
        if (prefix_is_plain(user.at[i])) {
            *at++ = user.at[i];
            continue;
        }
        *at++ = '%';
        *at++ = hex[c >> 4];
        *at++ = hex[c & 15];
    }
    return at;
}

bool prefix_of(struct slice text, struct slice user, char *out, struct slice *prefix)
{
    char *at = out;
    *prefix = text;
    if (text.len == 0 || memchr(text.at, '%', text.len) == NULL)
        return true;
    for (size_t i = 0; i < text.len; i++) {
        bool is_user = text.at[i] == '%' && meaning(text, i) == 'u';
        if (is_user && user.len > PREFIX_USER_MAX)
            return false;
        if (is_user)
            at = put_user(at, user.len > 0 ? user : SLICE("default"));
        else
            *at++ = text.at[i];
        i += text.at[i] == '%';
    }
    *prefix = slice_of(out, (size_t)(at - out));
    return true;
}

/* Writes the text before %u, and `name` behind it. */
static struct slice for_all_users(struct slice text, struct slice name, char *out)
{
    char *at = out;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '%' && meaning(text, i) == 'u')
            break;
        *at++ = text.at[i];
        i += text.at[i] == '%';
    }
    memcpy(at, name.at, name.len);
    return slice_of(out, (size_t)(at - out) + name.len);
}

struct slice prefix_channel(struct slice text, char *out)
{
    return for_all_users(text, SLICE("released"), out);
}

struct slice prefix_cover(struct slice text, char *out)
{
    return for_all_users(text, SLICE(PREFIX_COVER), out);
}
