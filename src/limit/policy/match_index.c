#include "limit/policy/match_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- prefixes ---- */

#define NO_ENTRY SIZE_MAX

struct prefix {
    struct slice bytes; /* heap */
    size_t bits;
    uint32_t whole; /* least number of the whole texts equal to this entry */
    /*
     * least number of the prefixes equal to this entry; after prefixes_finish also of the shorter
     * prefixes of this entry
     */
    uint32_t least;
    /* index of the longest other entry that is a prefix of this entry; NO_ENTRY: none */
    size_t parent;
};

static uint32_t match_index_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * A prefix sorts before all entries that begin with the prefix, and these entries follow directly.
 */
static int match_index_compare(struct slice a, size_t a_bits, struct slice b, size_t b_bits)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.at, b.at, len) : 0;
    if (order != 0)
        return order;
    return a_bits < b_bits ? -1 : a_bits > b_bits;
}

static int compare_entries(const void *a, const void *b)
{
    const struct prefix *one = a, *other = b;
    return match_index_compare(one->bytes, one->bits, other->bytes, other->bits);
}

/* Number of leading bits that `a` and `b` have in common. */
static size_t common_bits(struct slice a, struct slice b)
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.at[i] == b.at[i])
        i++;
    if (i == a.len || i == b.len)
        return 8 * i;
    unsigned differs = (unsigned char)a.at[i] ^ (unsigned char)b.at[i];
    return 8 * i + (size_t)__builtin_clz(differs) - (8 * sizeof differs - 8);
}

/*
 * Adds the first `bits` bits of `bytes`; later bits are 0. With `is_whole` the entry fits only an
 * equal text, otherwise every text with that prefix. Call prefixes_finish once before the first
 * look-up.
 */
static void prefixes_add(struct prefixes *prefixes, struct slice bytes, size_t bits, bool is_whole,
                         uint32_t number)
{
    bytes.len = (bits + 7) / 8;
    prefixes->at = mem_realloc(prefixes->at, prefixes->n + 1, sizeof *prefixes->at);
    prefixes->at[prefixes->n++] = (struct prefix){
        .bytes = slice_of(mem_strndup(bytes.at, bytes.len), bytes.len),
        .bits = bits,
        .whole = is_whole ? number : PREFIXES_NONE,
        .least = is_whole ? PREFIXES_NONE : number,
        .parent = NO_ENTRY,
    };
}

/*
 * The longest of the first n entries that is a prefix of `next`; NO_ENTRY: none. The parents of
 * these n entries are set.
 */
static size_t parent_of(const struct prefixes *prefixes, size_t n, const struct prefix *next)
{
    size_t at = n > 0 ? n - 1 : NO_ENTRY;
    size_t common = n > 0 ? common_bits(prefixes->at[at].bytes, next->bytes) : 0;
    while (at != NO_ENTRY && prefixes->at[at].bits > common)
        at = prefixes->at[at].parent;
    return at;
}

static void free_bytes(struct prefix *prefix)
{
    free((char *)(uintptr_t)prefix->bytes.at);
}

static void prefixes_finish(struct prefixes *prefixes)
{
    size_t n = 0;
    if (prefixes->n > 0)
        qsort(prefixes->at, prefixes->n, sizeof *prefixes->at, compare_entries);
    for (size_t i = 0; i < prefixes->n; i++) {
        struct prefix next = prefixes->at[i];
        if (n > 0 && compare_entries(&prefixes->at[n - 1], &next) == 0) {
            prefixes->at[n - 1].whole = match_index_smaller(prefixes->at[n - 1].whole, next.whole);
            prefixes->at[n - 1].least = match_index_smaller(prefixes->at[n - 1].least, next.least);
            free_bytes(&next);
            continue;
        }
        next.parent = parent_of(prefixes, n, &next);
        if (next.parent != NO_ENTRY)
            next.least = match_index_smaller(next.least, prefixes->at[next.parent].least);
        prefixes->at[n++] = next;
    }
    prefixes->n = n;
}

static void prefixes_fini(struct prefixes *prefixes)
{
    for (size_t i = 0; i < prefixes->n; i++)
        free_bytes(&prefixes->at[i]);
    free(prefixes->at);
    *prefixes = (struct prefixes){0};
}

/* The least number of the entries that fit `text`; PREFIXES_NONE: none. */
static uint32_t prefixes_find(const struct prefixes *prefixes, struct slice text)
{
    size_t low = 0, high = prefixes->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct prefix *prefix = &prefixes->at[middle];
        if (match_index_compare(prefix->bytes, prefix->bits, text, 8 * text.len) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return PREFIXES_NONE;
    const struct prefix *before = &prefixes->at[low - 1];
    size_t common = common_bits(before->bytes, text);
    uint32_t whole =
        before->bits == common && common == 8 * text.len ? before->whole : PREFIXES_NONE;
    while (before->bits > common) {
        if (before->parent == NO_ENTRY)
            return PREFIXES_NONE;
        before = &prefixes->at[before->parent];
    }
    return match_index_smaller(whole, before->least);
}

#define IP_KEY (1 + sizeof((struct ip *)0)->bytes) /* the family, then the address */

/*
 * Writes the literal text at the start of a pattern, unescaped, to `out`. Returns the rest of the
 * pattern.
 */
static struct slice match_index_take_text(struct slice glob, char *out, size_t *len)
{
    *len = 0;
    while (glob.len > 0 && glob.at[0] != '*' && glob.at[0] != '?' && glob.at[0] != '[') {
        size_t escape = glob.at[0] == '\\' && glob.len > 1;
        out[(*len)++] = glob.at[escape];
        glob = slice_of(glob.at + 1 + escape, glob.len - 1 - escape);
    }
    return glob;
}

static bool are_stars(struct slice rest)
{
    while (rest.len > 0 && rest.at[0] == '*')
        rest = slice_of(rest.at + 1, rest.len - 1);
    return rest.len == 0;
}

static void add_tried(struct match_index *index, const struct match *match, uint32_t policy)
{
    index->tried = mem_realloc(index->tried, index->n_tried + 1, sizeof *index->tried);
    index->tried[index->n_tried++] = (struct match_tried){match, policy};
}

static void add_glob(struct match_index *index, const struct match *match, uint32_t policy)
{
    struct slice glob = slice_str(match->glob);
    char *text = mem_alloc(glob.len + 1);
    size_t len;
    struct slice rest = match_index_take_text(glob, text, &len);
    if (are_stars(rest))
        prefixes_add(&index->of[match->kind], slice_of(text, len), 8 * len, rest.len == 0, policy);
    else
        add_tried(index, match, policy);
    free(text);
}

static struct slice match_index_key_of(const struct ip *ip, char key[IP_KEY])
{
    key[0] = (char)ip->family;
    memcpy(key + 1, ip->bytes, sizeof ip->bytes);
    return slice_of(key, 1 + ip_bits(ip) / 8);
}

void match_index_add(struct match_index *index, const struct match *match, uint32_t policy)
{
    char key[IP_KEY];
    const struct network *network = &match->network;
    index->has_keys |= match_is_of_key(match);
    if (match->kind == MATCH_IP)
        prefixes_add(&index->of[MATCH_IP], match_index_key_of(&network->ip, key),
                     8U + network->prefix, false, policy);
    else
        add_glob(index, match, policy);
}

void match_index_finish(struct match_index *index)
{
    for (size_t i = 0; i < MATCH_FACTS; i++)
        prefixes_finish(&index->of[i]);
}

void match_index_fini(struct match_index *index)
{
    for (size_t i = 0; i < MATCH_FACTS; i++)
        prefixes_fini(&index->of[i]);
    free(index->tried);
    *index = (struct match_index){0};
}

/*
 * The value of the fact for this client; .at is NULL: unknown. An empty text is unknown, except for
 * the key.
 */
static struct slice fact_of(const struct facts *facts, enum match_fact fact, char key[IP_KEY])
{
    const struct slice texts[] = {[MATCH_USER] = facts->user,
                                  [MATCH_NAME] = facts->name,
                                  [MATCH_TLS] = facts->tls,
                                  [MATCH_LISTENER] = facts->listener};
    if (fact == MATCH_KEY)
        return facts->key;
    if (fact == MATCH_IP)
        return facts->ip.family != 0 ? match_index_key_of(&facts->ip, key) : slice_of(NULL, 0);
    return texts[fact].len > 0 ? texts[fact] : slice_of(NULL, 0);
}

uint32_t match_index_find(const struct match_index *index, const struct facts *facts)
{
    char key[IP_KEY];
    uint32_t first = MATCH_INDEX_NONE;
    for (unsigned i = 0; i < MATCH_FACTS; i++) {
        struct slice text =
            index->of[i].n > 0 ? fact_of(facts, (enum match_fact)i, key) : slice_of(NULL, 0);
        uint32_t found = text.at != NULL ? prefixes_find(&index->of[i], text) : MATCH_INDEX_NONE;
        first = found < first ? found : first;
    }
    for (size_t i = 0; i < index->n_tried && index->tried[i].policy < first; i++)
        if (match_holds(index->tried[i].match, facts))
            return index->tried[i].policy;
    return first;
}
