/* The terms of a policy's match: each compares one fact of a client; an unknown fact never matches. */
#include <stdlib.h>

#include "base/glob.h"
#include "base/mem.h"
#include "base/near.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/policy/identity.h"

static const char *const kind_names[MATCH_FACTS] = {"user", "name", "tls", "listener", "key", "ip"};

static struct slice kind_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(kind_names[i]);
}

static bool why_unknown(struct slice text, struct slice name, char *why, size_t why_size)
{
    struct slice near = near_name(name, MATCH_FACTS, kind_name, NULL);
    if (near.len > 0)
        return why_set(why, why_size, "unknown term \"%.*s\" (did you mean %.*s:...?)", WHY_SLICE(text),
                       WHY_SLICE(near));
    return why_set(why, why_size,
                   "unknown term \"%.*s\": write user:PATTERN, name:PATTERN, tls:PATTERN, listener:PATTERN, "
                   "key:PATTERN or ip:ADDRESS/N",
                   WHY_SLICE(text));
}

static bool parse_glob(struct match *match, struct slice text, struct slice glob, char *why, size_t why_size)
{
    struct slice first, rest = glob;
    if (glob.len == 0)
        return why_set(why, why_size, "\"%.*s\" has no pattern: write %.*s* for any", WHY_SLICE(text), WHY_SLICE(text));
    if (split_word(&rest, &first) && rest.len > 0)
        return why_set(why, why_size, "\"%.*s\" has a space in it: terms are separated by commas", WHY_SLICE(text));
    if (memchr(glob.at, '\0', glob.len) != NULL)
        return why_set(why, why_size, "\"%.*s\" is followed by a NUL byte", WHY_SLICE(text));
    if (!glob_is_closed(glob))
        return why_set(why, why_size, "\"%.*s\" has a [ that is never closed: write \\[ for the character itself",
                       WHY_SLICE(text));
    if (match->kind == MATCH_USER && slice_eq(glob, SLICE("default")))
        return why_set(why, why_size,
                       "\"%.*s\" would match nobody: clients that have not logged in have no user; bind them with "
                       "[policy default], which takes everybody else",
                       WHY_SLICE(text));
    match->glob = mem_strndup(glob.at, glob.len);
    return true;
}

static bool parse_network(struct match *match, struct slice text, struct slice network, char *why, size_t why_size)
{
    char printed[IP_TEXT_MAX];
    switch (network_parse(&match->network, network)) {
    case NETWORK_NO_ADDRESS:
        return why_set(why, why_size,
                       "\"%.*s\" is not an address: write ip:192.0.2.7, ip:10.1.0.0/16 or ip:2001:db8::/32",
                       WHY_SLICE(text));
    case NETWORK_BAD_PREFIX:
        return why_set(why, why_size, "\"%.*s\": the prefix length must be 0 to %u", WHY_SLICE(text),
                       ip_bits(&match->network.ip));
    case NETWORK_HOST_BITS:
        ip_print(&match->network.ip, printed);
        return why_set(why, why_size, "\"%.*s\" names an address beyond its prefix length: the network is ip:%s/%u",
                       WHY_SLICE(text), printed, match->network.prefix);
    case NETWORK_GOOD:
        break;
    }
    return true;
}

bool match_parse(struct match *match, struct slice text, char *why, size_t why_size)
{
    struct slice rest = text, name;
    *match = (struct match){0};
    if (text.len == 0 || memchr(text.at, ':', text.len) == NULL)
        return why_unknown(text, text, why, why_size);
    split_next(&rest, ':', &name);
    rest = split_trim(rest);
    for (size_t kind = 0; kind < MATCH_FACTS; kind++) {
        if (!slice_eq_nocase(name, slice_str(kind_names[kind])))
            continue;
        match->kind = (uint8_t)kind;
        if (kind == MATCH_IP)
            return parse_network(match, text, rest, why, why_size);
        return parse_glob(match, text, rest, why, why_size);
    }
    return why_unknown(text, name, why, why_size);
}

static bool glob_holds(const struct match *match, struct slice text)
{
    return text.len > 0 && glob_match(slice_str(match->glob), text);
}

bool match_holds(const struct match *match, const struct facts *facts)
{
    switch ((enum match_fact)match->kind) {
    case MATCH_USER:
        return glob_holds(match, facts->user);
    case MATCH_NAME:
        return glob_holds(match, facts->name);
    case MATCH_TLS:
        return glob_holds(match, facts->tls);
    case MATCH_LISTENER:
        return glob_holds(match, facts->listener);
    case MATCH_KEY:
        return facts->key.at != NULL && glob_match(slice_str(match->glob), facts->key);
    case MATCH_IP:
        return network_holds(&match->network, &facts->ip);
    case MATCH_FACTS:
        break;
    }
    return false;
}

bool match_is_of_key(const struct match *match)
{
    return match->kind == MATCH_KEY;
}

/* ---- what can be said of terms without a client ---- */

bool match_is_open(const struct match *match)
{
    return match->kind == MATCH_IP ? match->network.prefix == 0 : glob_is_any(slice_str(match->glob));
}

/* Every client has come to some listener; all else may be unknown. */
bool match_is_of_all(const struct match *match)
{
    return match->kind == MATCH_LISTENER && match_is_open(match);
}

bool match_covers(const struct match *wide, const struct match *narrow)
{
    if (match_is_of_all(wide))
        return true;
    if (wide->kind != narrow->kind)
        return false;
    if (wide->kind != MATCH_IP)
        return glob_covers(slice_str(wide->glob), slice_str(narrow->glob));
    return wide->network.prefix <= narrow->network.prefix && network_holds(&wide->network, &narrow->network.ip);
}

bool match_is_claimed(const struct match *match)
{
    return match->kind == MATCH_NAME || match->kind == MATCH_KEY;
}

const char *match_kind(const struct match *match)
{
    return kind_names[match->kind];
}

void match_fini(struct match *match)
{
    free(match->glob);
    match->glob = NULL;
}
