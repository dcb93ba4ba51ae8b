#include "limit/policy/match_index.h"

#include <stdlib.h>

#include "base/mem.h"

#define IP_KEY (1 + sizeof((struct ip *)0)->bytes) /* the family, then the address */

/* The text that a pattern begins with, without what escapes it, into `out`; the rest of it is returned. */
static struct slice take_text(struct slice glob, char *out, size_t *len)
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
    struct slice rest = take_text(glob, text, &len);
    if (are_stars(rest))
        prefixes_add(&index->of[match->kind], slice_of(text, len), 8 * len, rest.len == 0, policy);
    else
        add_tried(index, match, policy);
    free(text);
}

static struct slice key_of(const struct ip *ip, char key[IP_KEY])
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
        prefixes_add(&index->of[MATCH_IP], key_of(&network->ip, key), 8U + network->prefix, false, policy);
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

/* What a client shows of it; .at is NULL: nothing is known. Of facts but the key an empty text is none. */
static struct slice fact_of(const struct facts *facts, enum match_fact fact, char key[IP_KEY])
{
    const struct slice texts[] = {[MATCH_USER] = facts->user,
                                  [MATCH_NAME] = facts->name,
                                  [MATCH_TLS] = facts->tls,
                                  [MATCH_LISTENER] = facts->listener};
    if (fact == MATCH_KEY)
        return facts->key;
    if (fact == MATCH_IP)
        return facts->ip.family != 0 ? key_of(&facts->ip, key) : slice_of(NULL, 0);
    return texts[fact].len > 0 ? texts[fact] : slice_of(NULL, 0);
}

uint32_t match_index_find(const struct match_index *index, const struct facts *facts)
{
    char key[IP_KEY];
    uint32_t first = MATCH_INDEX_NONE;
    for (unsigned i = 0; i < MATCH_FACTS; i++) {
        struct slice text = index->of[i].n > 0 ? fact_of(facts, (enum match_fact)i, key) : slice_of(NULL, 0);
        uint32_t found = text.at != NULL ? prefixes_find(&index->of[i], text) : MATCH_INDEX_NONE;
        first = found < first ? found : first;
    }
    for (size_t i = 0; i < index->n_tried && index->tried[i].policy < first; i++)
        if (match_holds(index->tried[i].match, facts))
            return index->tried[i].policy;
    return first;
}
