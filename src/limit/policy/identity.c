/*
 * Makes the names of subjects.
 *
 * Different values of one source never give the same name. Escaped, masked and cut values carry a
 * mark that no other value contains.
 */
#include "limit/policy/identity.h"

#include <stdlib.h>

#include "base/glob.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"

enum kind { BY_USER, BY_NAME, BY_IP, BY_IP4, BY_IP6, BY_LISTENER, BY_KEY, BY_TLS };

static const struct source {
    const char *name;
    enum kind kind;
} sources[] = {
    {"user", BY_USER},         {"name", BY_NAME}, {"ip", BY_IP},   {"ip6", BY_IP6},
    {"listener", BY_LISTENER}, {"key", BY_KEY},   {"tls", BY_TLS},
};

#define KEY_SEGMENTS_MAX 32
#define SITE_PREFIX 64 /* bits of IPv6: the least that a provider gives to one customer */
#define N_SOURCES (sizeof sources / sizeof sources[0])

static struct slice source_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(sources[i].name);
}

static const struct source *identity_find_source(struct slice name)
{
    for (size_t i = 0; i < N_SOURCES; i++)
        if (slice_eq_nocase(name, slice_str(sources[i].name)))
            return &sources[i];
    return NULL;
}

static bool why_unknown(struct slice text, struct slice name, char *why, size_t why_size)
{
    struct slice near = near_name(name, N_SOURCES, source_name, NULL);
    if (near.len > 0)
        return why_set(why, why_size, "unknown source \"%.*s\" (did you mean %.*s?)",
                       WHY_SLICE(text), WHY_SLICE(near));
    return why_set(
        why, why_size,
        "unknown source \"%.*s\": write user, name, tls, ip, ip/24, ip6/64, listener or key:2",
        WHY_SLICE(text));
}

/* Parses the rest of "ip" (an address of either family), "ip/24" or "ip6/64" (a network). */
static bool parse_prefix(struct slice text, struct slice after, enum kind *kind, uint8_t *prefix,
                         char *why, size_t why_size)
{
    int64_t bits;
    int64_t most = *kind == BY_IP6 ? 128 : 32;
    if (*kind == BY_IP && after.len == 0)
        return true;
    if (*kind == BY_IP6 && after.len == 0)
        return why_set(why, why_size,
                       "\"%.*s\" needs a prefix length, like ip6/64; ip is the whole address",
                       WHY_SLICE(text));
    split_take(&after, 1);
    if (!num_parse(after, &bits) || bits < 1 || bits > most)
        return why_set(why, why_size, "\"%.*s\": the prefix length must be 1 to %d",
                       WHY_SLICE(text), (int)most);
    *prefix = (uint8_t)bits;
    if (*kind == BY_IP)
        *kind = BY_IP4;
    return true;
}

/* Parses the number of segments of "key:2". */
static bool parse_segments(struct slice text, struct slice after, uint8_t *segments, char *why,
                           size_t why_size)
{
    int64_t n;
    if (after.len == 0 || after.at[0] != ':')
        return why_set(why, why_size,
                       "\"%.*s\" needs a number of segments: key:1 takes the part before the first "
                       "colon",
                       WHY_SLICE(text));
    split_take(&after, 1);
    if (!num_parse(after, &n) || n < 1 || n > KEY_SEGMENTS_MAX)
        return why_set(why, why_size, "\"%.*s\": the number of segments must be 1 to %d",
                       WHY_SLICE(text), KEY_SEGMENTS_MAX);
    *segments = (uint8_t)n;
    return true;
}

static bool parse_source(struct slice text, enum kind *kind, uint8_t *prefix, char *why,
                         size_t why_size)
{
    struct slice after = text;
    size_t len = 0;
    while (len < text.len && text.at[len] != '/' && text.at[len] != ':')
        len++;
    struct slice name = split_take(&after, len);
    const struct source *source = identity_find_source(name);
    if (source == NULL)
        return why_unknown(text, name, why, why_size);
    *kind = source->kind;
    if (*kind == BY_KEY)
        return parse_segments(text, after, prefix, why, why_size);
    bool is_bare = *kind == BY_USER || *kind == BY_NAME || *kind == BY_TLS || *kind == BY_LISTENER;
    if (after.len > 0 && (after.at[0] == ':' || is_bare))
        return why_set(why, why_size, "\"%.*s\": only ip and ip6 take a length (ip/24, ip6/64)",
                       WHY_SLICE(text));
    if (is_bare)
        return true;
    return parse_prefix(text, after, kind, prefix, why, why_size);
}

/* True if a source of that kind is never reached, since an earlier source always gives a name. */
static bool is_covered(const struct identity *identity, enum kind kind)
{
    for (size_t i = 0; i < identity->count; i++) {
        enum kind earlier = (enum kind)identity->sources[i].kind;
        if (earlier == kind || (earlier == BY_IP && (kind == BY_IP4 || kind == BY_IP6)))
            return true;
    }
    return false;
}

bool identity_parse(struct identity *identity, struct slice text, char *why, size_t why_size)
{
    struct identity parsed = {0};
    struct slice part;
    if (text.len == 0)
        return why_set(why, why_size, "a source is missing: write user, ip");
    while (split_next(&text, ',', &part)) {
        enum kind kind = BY_USER;
        uint8_t prefix = 0;
        if (part.len == 0)
            return why_set(why, why_size, "a source is missing next to a comma");
        if (!parse_source(part, &kind, &prefix, why, why_size))
            return false;
        if (is_covered(&parsed, kind))
            return why_set(why, why_size,
                           "\"%.*s\" is never reached: an earlier source names the same clients",
                           WHY_SLICE(part));
        parsed.sources[parsed.count].kind = (uint8_t)kind;
        parsed.sources[parsed.count].prefix = prefix;
        parsed.count++; /* no kind occurs twice: the array has room */
    }
    *identity = parsed;
    return true;
}

/* ---- writing ---- */

static const char hex[] = "0123456789ABCDEF";

#define HASH_DIGITS 16
#define CUT_LEN (2 + HASH_DIGITS) /* "%#" plus the hash; no escape produces "%#" */

static size_t identity_put(char *out, struct slice text)
{
    memcpy(out, text.at, text.len);
    return text.len;
}

/*
 * Writes as many whole bytes of `text`, escaped, as fit in `room`. *all: true if the whole text
 * fits.
 */
static size_t put_escaped(char *out, size_t room, struct slice text, bool *all)
{
    size_t len = 0;
    size_t i = 0;
    for (; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        bool is_plain = byte > ' ' && byte < 0x7f && byte != '%';
        if (len + (is_plain ? 1 : 3) > room)
            break;
        if (is_plain) {
            out[len++] = (char)byte;
            continue;
        }
        out[len++] = '%';
        out[len++] = hex[byte >> 4];
        out[len++] = hex[byte & 15];
    }
    *all = i == text.len;
    return len;
}

static size_t put_hash(char *out, struct slice text)
{
    uint64_t hash = hash_bytes((struct hash_key){0, 0}, text);
    size_t len = identity_put(out, SLICE("%#"));
    for (int shift = 4 * (HASH_DIGITS - 1); shift >= 0; shift -= 4)
        out[len++] = hex[hash >> shift & 15];
    return len;
}

static size_t name_text(char *out, struct slice source, struct slice text)
{
    if (text.len == 0)
        return 0;
    bool all;
    size_t start = identity_put(out, source);
    size_t len = put_escaped(out + start, SUBJECT_NAME_MAX - start, text, &all);
    if (all)
        return start + len;
    len = put_escaped(out + start, SUBJECT_NAME_MAX - start - CUT_LEN, text, &all);
    return start + len + put_hash(out + start + len, text);
}

static size_t name_ip(char *out, const struct ip *ip)
{
    char text[IP_TEXT_MAX];
    if (ip->family == 0)
        return 0;
    size_t len = identity_put(out, SLICE("ip:"));
    return len + identity_put(out + len, slice_of(text, ip_print(ip, text)));
}

static size_t name_network(char *out, const struct ip *ip, uint8_t family, uint8_t prefix)
{
    if (ip->family != family)
        return 0;
    struct ip network = ip_network(ip, prefix);
    size_t len = name_ip(out, &network);
    out[len++] = '/';
    if (prefix >= 100)
        out[len++] = (char)('0' + prefix / 100);
    if (prefix >= 10)
        out[len++] = (char)('0' + prefix / 10 % 10);
    out[len++] = (char)('0' + prefix % 10);
    return len;
}

/*
 * The first segments of the key, without the colon after them. The key "" is known, and has a name.
 */
static size_t name_key(char *out, struct slice key, uint8_t segments)
{
    size_t len = 0;
    if (key.at == NULL)
        return 0;
    for (; len < key.len && !(key.at[len] == ':' && --segments == 0); len++)
        ;
    return len > 0 ? name_text(out, SLICE("key:"), slice_of(key.at, len))
                   : identity_put(out, SLICE("key:"));
}

static size_t name_by(enum kind kind, uint8_t prefix, const struct facts *facts, char *out)
{
    switch (kind) {
    case BY_USER:
        return name_text(out, SLICE("user:"), facts->user);
    case BY_NAME:
        return name_text(out, SLICE("name:"), facts->name);
    case BY_IP:
        return name_ip(out, &facts->ip);
    case BY_IP4:
        return name_network(out, &facts->ip, 4, prefix);
    case BY_IP6:
        return name_network(out, &facts->ip, 6, prefix);
    case BY_LISTENER:
        return name_text(out, SLICE("listener:"), facts->listener);
    case BY_KEY:
        return name_key(out, facts->key, prefix);
    case BY_TLS:
        return name_text(out, SLICE("tls:"), facts->tls);
    }
    return 0;
}

size_t identity_address(const struct facts *facts, char *out)
{
    size_t len = name_ip(out, &facts->ip);
    return len > 0 ? len : identity_put(out, SLICE("ip:unix"));
}

size_t identity_site(const struct ip *ip, char *out)
{
    const struct facts facts = {.ip = *ip};
    size_t len = name_network(out, ip, 6, SITE_PREFIX);
    return len > 0 ? len : identity_address(&facts, out);
}

size_t identity_subject(const struct identity *identity, const struct facts *facts, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < identity->count && len == 0; i++)
        len =
            name_by((enum kind)identity->sources[i].kind, identity->sources[i].prefix, facts, out);
    return len > 0 ? len : identity_address(facts, out);
}

bool identity_needs_key(const struct identity *identity, const struct facts *facts)
{
    char name[SUBJECT_NAME_MAX];
    struct facts keyless = *facts;
    keyless.key = slice_of(NULL, 0);
    for (size_t i = 0; i < identity->count; i++) {
        enum kind kind = (enum kind)identity->sources[i].kind;
        if (kind == BY_KEY)
            return true;
        if (name_by(kind, identity->sources[i].prefix, &keyless, name) > 0)
            return false;
    }
    return false;
}

/* ---- match terms: each compares one fact of a client; an unknown fact never matches ---- */

static const char *const kind_names[MATCH_FACTS] = {"user", "name", "tls", "listener", "key", "ip"};

static struct slice identity_kind_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(kind_names[i]);
}

static bool why_unknown_term(struct slice text, struct slice name, char *why, size_t why_size)
{
    struct slice near = near_name(name, MATCH_FACTS, identity_kind_name, NULL);
    if (near.len > 0)
        return why_set(why, why_size, "unknown term \"%.*s\" (did you mean %.*s:...?)",
                       WHY_SLICE(text), WHY_SLICE(near));
    return why_set(
        why, why_size,
        "unknown term \"%.*s\": write user:PATTERN, name:PATTERN, tls:PATTERN, listener:PATTERN, "
        "key:PATTERN or ip:ADDRESS/N",
        WHY_SLICE(text));
}

static bool parse_glob(struct match *match, struct slice text, struct slice glob, char *why,
                       size_t why_size)
{
    struct slice first, rest = glob;
    if (glob.len == 0)
        return why_set(why, why_size, "\"%.*s\" has no pattern: write %.*s* for any",
                       WHY_SLICE(text), WHY_SLICE(text));
    if (split_word(&rest, &first) && rest.len > 0)
        return why_set(why, why_size, "\"%.*s\" has a space in it: terms are separated by commas",
                       WHY_SLICE(text));
    if (memchr(glob.at, '\0', glob.len) != NULL)
        return why_set(why, why_size, "\"%.*s\" is followed by a NUL byte", WHY_SLICE(text));
    if (!glob_is_closed(glob))
        return why_set(why, why_size,
                       "\"%.*s\" has a [ that is never closed: write \\[ for the character itself",
                       WHY_SLICE(text));
    if (match->kind == MATCH_USER && slice_eq(glob, SLICE("default")))
        return why_set(
            why, why_size,
            "\"%.*s\" matches no client: clients without a login have no user; use [policy default] for "
            "them",
            WHY_SLICE(text));
    match->glob = mem_strndup(glob.at, glob.len);
    return true;
}

static bool parse_network(struct match *match, struct slice text, struct slice network, char *why,
                          size_t why_size)
{
    char printed[IP_TEXT_MAX];
    switch (network_parse(&match->network, network)) {
    case NETWORK_NO_ADDRESS:
        return why_set(
            why, why_size,
            "\"%.*s\" is not an address: write ip:192.0.2.7, ip:10.1.0.0/16 or ip:2001:db8::/32",
            WHY_SLICE(text));
    case NETWORK_BAD_PREFIX:
        return why_set(why, why_size, "\"%.*s\": the prefix length must be 0 to %u",
                       WHY_SLICE(text), ip_bits(&match->network.ip));
    case NETWORK_HOST_BITS:
        ip_print(&match->network.ip, printed);
        return why_set(
            why, why_size,
            "\"%.*s\" has address bits beyond its prefix length: the network is ip:%s/%u",
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
        return why_unknown_term(text, text, why, why_size);
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
    return why_unknown_term(text, name, why, why_size);
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

/* ---- statements about terms without a client ---- */

bool match_is_open(const struct match *match)
{
    return match->kind == MATCH_IP ? match->network.prefix == 0
                                   : glob_is_any(slice_str(match->glob));
}

/* Every client has a listener; each other fact may be unknown. */
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
    return wide->network.prefix <= narrow->network.prefix &&
           network_holds(&wide->network, &narrow->network.ip);
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
