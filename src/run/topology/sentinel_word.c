#include "run/topology/sentinel_word.h"

#include <stdio.h>
#include <string.h>

enum mastership_age sentinel_word_age(const struct sentinel_word *word, uint64_t now_ns)
{
    uint64_t answered_ns = word->answered_ns;
    return answered_ns != 0 && now_ns - answered_ns < SENTINEL_HOLDS_NS ? CLAIM_FRESH : CLAIM_OLD;
}

/*
 * Copies text for the log, which may be read on a terminal: bytes that are not printable become
 * '?'.
 */
static void copy_printable(char *out, size_t room, struct slice text)
{
    size_t n = text.len < room - 1 ? text.len : room - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
    out[n] = '\0';
}

void sentinel_word_set_trouble(struct sentinel_word *word, enum sentinel_trouble trouble,
                               struct slice why)
{
    if (trouble != TROUBLE_NONE && trouble != TROUBLE_AWAY && trouble != TROUBLE_SILENT)
        word->answered_ns = 0;
    word->is_changed = word->is_changed || word->trouble != trouble;
    word->trouble = trouble;
    copy_printable(word->why, sizeof word->why, why);
}

void sentinel_word_take_id(struct sentinel_word *word, const struct said *said)
{
    char before[SENTINEL_ID];
    if (said->kind != SAID_TEXT || said->text.len == 0 || said->text.len >= sizeof word->id)
        return;
    snprintf(before, sizeof before, "%s", word->id);
    copy_printable(word->id, sizeof word->id, said->text);
    word->is_changed = word->is_changed || !word->has_id || strcmp(before, word->id) != 0;
    word->has_id = true;
}

static bool sentinel_word_is_same(const struct sentinel_server *a, const struct sentinel_server *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0 && strcmp(a->run_id, b->run_id) == 0;
}

bool sentinel_word_take_claim(struct sentinel_word *word, const struct sentinel_server *server,
                              enum sentinel_trouble trouble, struct slice why, uint64_t now_ns)
{
    bool is_other = !word->has_named || word->master.port != server->port ||
                    strcmp(word->master.host, server->host) != 0;
    if (is_other)
        word->since_ns = now_ns;
    word->is_changed = word->is_changed || is_other || word->master.epoch != server->epoch;
    word->has_named = true;
    word->master = *server;
    sentinel_word_set_trouble(word, trouble, why);
    word->answered_ns = now_ns;
    return is_other;
}

enum which { ALL, THOSE_REACHED };

/* Reads a list of servers into out. True if the list differs from the previous content. */
static bool take_list(const struct said *said, enum which which, struct sentinel_server *out,
                      size_t *n_out, size_t most)
{
    struct sentinel_server server;
    struct slice rest = said->inside;
    struct said element;
    size_t n = 0;
    bool are_others = false;
    if (said->kind != SAID_LIST)
        return false;
    while (n < most && said_next(&rest, &element)) {
        if (!sentinel_read_server(&element, &server) || (which == THOSE_REACHED && server.is_down))
            continue;
        are_others = are_others || n >= *n_out || !sentinel_word_is_same(&server, &out[n]);
        out[n++] = server;
    }
    are_others = are_others || n != *n_out;
    *n_out = n;
    return are_others;
}

void sentinel_word_take_peers(struct sentinel_word *word, const struct said *said)
{
    if (take_list(said, ALL, word->peers, &word->n_peers, SENTINELS_MOST))
        word->is_changed = true;
}

void sentinel_word_take_replicas(struct sentinel_word *word, const struct said *said)
{
    if (take_list(said, THOSE_REACHED, word->replicas, &word->n_replicas, SENTINELS_REPLICAS_MOST))
        word->is_changed = true;
}
