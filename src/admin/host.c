#include "admin/host.h"

#include "base/slice.h"
#include "limit/policy/ip.h"

#define NAME_MAX_LEN 253 /* longest host name in DNS */

static bool host_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True for an empty text and for a port such as ":9380". */
static bool is_port(struct slice text)
{
    for (size_t i = 1; i < text.len; i++)
        if (!host_is_digit(text.at[i]))
            return false;
    return text.len == 0 || text.at[0] == ':';
}

/* Returns the index of the first `c` in the text, or the text's length. */
static size_t host_find(struct slice text, char c)
{
    const char *at = text.len > 0 ? memchr(text.at, c, text.len) : NULL;
    return at != NULL ? (size_t)(at - text.at) : text.len;
}

static bool host_is_address(struct slice text, unsigned family)
{
    struct ip ip;
    return ip_parse(text, &ip) && ip.family == family;
}

/* True for an address such as "[::1]:9380". */
static bool is_bracketed(struct slice host)
{
    struct slice rest = host;
    size_t end = host_find(host, ']');
    if (end == host.len || end == 0)
        return false;
    struct slice address = split_take(&rest, end);
    split_take(&rest, 1);
    split_take(&address, 1);
    struct ip ip;
    return is_port(rest) && host_find(address, ':') < address.len && ip_parse(address, &ip);
}

static struct slice without_dot(struct slice name)
{
    return name.len > 1 && name.at[name.len - 1] == '.' ? slice_of(name.at, name.len - 1) : name;
}

static bool is_one_of(struct slice name, struct slice names)
{
    struct slice one;
    while (split_next(&names, ',', &one))
        if (one.len > 0 && slice_eq_nocase(without_dot(one), name))
            return true;
    return false;
}

bool host_is_known(struct slice host, struct slice names)
{
    struct slice rest = split_trim(host);
    if (rest.len > 0 && rest.at[0] == '[')
        return is_bracketed(rest);
    struct slice name = without_dot(split_take(&rest, host_find(rest, ':')));
    if (!is_port(rest) || name.len == 0)
        return false;
    return host_is_address(name, 4) || slice_eq_nocase(name, SLICE("localhost")) ||
           is_one_of(name, names);
}

bool host_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = ascii_lower(name.at[i]);
        if (!(c >= 'a' && c <= 'z') && !host_is_digit(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_LEN && name.at[0] != '.';
}
