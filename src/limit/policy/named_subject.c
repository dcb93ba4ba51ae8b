/*
 * Splits a name into facts, and makes a name from these facts again. A name not in weir's own
 * spelling comes out differently; the result is the suggestion to the operator.
 */
#include "limit/policy/named_subject.h"

#include <string.h>

#include "base/why.h"
#include "limit/policy/ip.h"

enum kind { KIND_USER, KIND_NAME, KIND_TLS, KIND_IP, KIND_LISTENER, KIND_KEY, N_KINDS };

static const char *const kinds[N_KINDS] = {"user", "name", "tls", "ip", "listener", "key"};

#define FORMS "write user:NAME, ip:ADDRESS, name:NAME, tls:NAME, listener:ADDRESS or key:BEGINNING"

static struct slice named_subject_kind_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(kinds[i]);
}

static enum kind find_kind(struct slice word)
{
    size_t kind = 0;
    while (kind < N_KINDS && !slice_eq(word, slice_str(kinds[kind])))
        kind++;
    return (enum kind)kind;
}

/* The part before the first colon; the whole name if there is none. */
static struct slice kind_word(struct slice name)
{
    const char *colon = name.len > 0 ? memchr(name.at, ':', name.len) : NULL;
    return colon != NULL ? slice_of(name.at, (size_t)(colon - name.at)) : name;
}

bool named_subject_is_connected(struct slice name)
{
    return find_kind(kind_word(name)) != KIND_KEY;
}

bool named_subject_is_pattern(struct slice name)
{
    return name.len > 0 &&
           (memchr(name.at, '*', name.len) != NULL || memchr(name.at, '?', name.len) != NULL);
}

/* ---- reading ---- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Replaces %XX by its byte. *is_cut: the name was too long, and its end is unknown. */
static struct slice named_subject_unescape(struct slice value, char *out, bool *is_cut)
{
    size_t len = 0;
    *is_cut = false;
    for (size_t i = 0; i < value.len; i++) {
        bool has_two = value.at[i] == '%' && i + 2 < value.len;
        int high = has_two ? digit(value.at[i + 1]) : -1,
            low = has_two ? digit(value.at[i + 2]) : -1;
        *is_cut |= has_two && value.at[i + 1] == '#';
        if (high >= 0 && low >= 0) {
            out[len++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[len++] = value.at[i];
        }
    }
    return slice_of(out, len);
}

static bool refuse_kind(struct slice name, struct slice word, char *why, size_t why_size)
{
    struct slice near = near_name(word, N_KINDS, named_subject_kind_name, NULL);
    if (word.len == name.len && near.len > 0)
        return why_set(why, why_size,
                       "no such subject: %.*s is not a valid name (did you mean %.*s:...?)",
                       WHY_SLICE(name), WHY_SLICE(near));
    if (word.len == name.len)
        return why_set(why, why_size, "no such subject: %.*s is not a valid name: " FORMS,
                       WHY_SLICE(name));
    struct slice rest = slice_of(name.at + word.len, name.len - word.len);
    if (near.len > 0)
        return why_set(why, why_size, "no such subject: %.*s (did you mean %.*s%.*s?)",
                       WHY_SLICE(name), WHY_SLICE(near), WHY_SLICE(rest));
    return why_set(why, why_size, "no such subject: %.*s: " FORMS, WHY_SLICE(name));
}

static bool read_ip(struct named_subject *named, struct slice value)
{
    struct network network = {0};
    if (slice_eq(value, SLICE("unix")))
        return true;
    enum network_fault fault = network_parse(&network, value);
    named->facts.ip = network.ip;
    return fault == NETWORK_GOOD || fault == NETWORK_HOST_BITS;
}

static bool read_value(struct named_subject *named, enum kind kind, struct slice text,
                       struct slice value)
{
    struct facts *facts = &named->facts;
    switch (kind) {
    case KIND_USER:
        facts->user = text;
        break;
    case KIND_NAME:
        facts->name = text;
        break;
    case KIND_TLS:
        facts->tls = text;
        break;
    case KIND_LISTENER:
        facts->listener = text;
        break;
    case KIND_KEY:
        facts->key = text;
        return true;
    case KIND_IP:
        return read_ip(named, value);
    case N_KINDS:
        return false;
    }
    return text.len > 0;
}

/* True if these facts give that name. */
static bool named_subject_is_named_so(const struct named_subject *named,
                                      const struct identity *identity, struct slice name, char *why,
                                      size_t why_size)
{
    char text[SUBJECT_NAME_MAX];
    struct slice right = slice_of(text, identity_subject(identity, &named->facts, text));
    if (slice_eq(right, name))
        return true;
    struct slice word = kind_word(name);
    bool is_address = find_kind(word) == KIND_IP && memchr(right.at, '/', right.len) == NULL;
    if (is_address && slice_eq(kind_word(right), word) && memchr(name.at, '/', name.len) != NULL)
        return why_set(
            why, why_size,
            "no such subject: %.*s: identity in [weir] uses whole addresses (did you mean %.*s?)",
            WHY_SLICE(name), WHY_SLICE(right));
    if (slice_eq(kind_word(right), word) && !slice_eq(right, SLICE("ip:unix")))
        return why_set(why, why_size, "no such subject: %.*s (did you mean %.*s?)", WHY_SLICE(name),
                       WHY_SLICE(right));
    return why_set(why, why_size,
                   "no such subject: %.*s: identity in [weir] names no subject by %.*s",
                   WHY_SLICE(name), WHY_SLICE(word));
}

bool named_subject_read(struct named_subject *named, const struct identity *identity,
                        struct slice name, char *why, size_t why_size)
{
    struct slice word = kind_word(name);
    enum kind kind = find_kind(word);
    bool is_cut;
    *named = (struct named_subject){0};
    if (kind == N_KINDS || word.len == name.len)
        return refuse_kind(name, word, why, why_size);
    if (name.len > SUBJECT_NAME_MAX)
        return why_set(why, why_size, "no such subject: %.*s...: a name has at most %d bytes",
                       WHY_SLICE(name), SUBJECT_NAME_MAX);
    struct slice value = slice_of(name.at + word.len + 1, name.len - word.len - 1);
    struct slice text = named_subject_unescape(value, named->text, &is_cut);
    if (!read_value(named, kind, text, value))
        return why_set(why, why_size, "no such subject: %.*s is not %s", WHY_SLICE(name),
                       kind == KIND_IP ? "an address: write ip:192.0.2.7 or ip:10.1.2.0/24"
                                       : "a name");
    named->is_whole = !is_cut && kind != KIND_KEY &&
                      !(kind == KIND_IP && memchr(value.at, '/', value.len) != NULL);
    return is_cut || named_subject_is_named_so(named, identity, name, why, why_size);
}
