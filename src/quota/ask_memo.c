#include "quota/ask_memo.h"

#include <string.h>

#include "resp/plain.h"

#define WORDS 2 /* of the head: LIMIT FUNNEL */

struct pieces {
    struct slice head;
    struct slice key;
    struct slice tail;
};

/* False: it is not as short and plain as what is kept. */
static bool cut(struct slice request, struct pieces *pieces)
{
    const char *end = request.at + request.len;
    uint32_t argc, len = 0;
    const char *at = plain_header(request.at, end, &argc);
    for (int i = 0; at != NULL && i < WORDS; i++) {
        const char *word = plain_bulk(at, end, &len);
        at = word != NULL ? word + len + CRLF_LEN : NULL;
    }
    const char *key = at != NULL ? plain_bulk(at, end, &len) : NULL;
    if (key == NULL || len > QUOTA_KEY_MAX)
        return false;
    const char *tail = key + len + CRLF_LEN;
    pieces->head = slice_of(request.at, (size_t)(at - request.at));
    pieces->key = slice_of(key, len);
    pieces->tail = slice_of(tail, (size_t)(end - tail));
    return pieces->tail.len > 0 && pieces->tail.len <= ASK_MEMO_TAIL && pieces->head.len <= ASK_MEMO_HEAD;
}

/* Tails differ in their digits. */
static unsigned slot_of(struct slice tail)
{
    uint32_t sum = (uint32_t)tail.len;
    for (size_t i = 0; i < tail.len; i++)
        sum = sum * 31 + (unsigned char)tail.at[i];
    return (sum ^ sum >> 16) % ASK_MEMO_SLOTS;
}

bool ask_memo_find(const struct ask_memo *memo, struct slice request, struct quota_ask *ask)
{
    struct pieces pieces;
    if (!cut(request, &pieces))
        return false;
    unsigned slot = slot_of(pieces.tail);
    if (memo->slots[slot].head_len == 0 ||
        !slice_eq(pieces.head, slice_of(memo->slots[slot].head, memo->slots[slot].head_len)) ||
        !slice_eq(pieces.tail, slice_of(memo->slots[slot].tail, memo->slots[slot].tail_len)))
        return false;
    *ask = memo->slots[slot].ask;
    ask->key = pieces.key;
    return true;
}

void ask_memo_note(struct ask_memo *memo, struct slice request, const struct quota_ask *ask)
{
    struct pieces pieces;
    bool is_alone = ask->rule.n_rates > 0 && ask->n_parts == 0 && ask->name.at == NULL && ask->token.at == NULL &&
                    ask->rule.zone == NULL;
    if (!is_alone || !cut(request, &pieces) || pieces.key.at != ask->key.at || pieces.key.len != ask->key.len)
        return;
    unsigned slot = slot_of(pieces.tail);
    memo->slots[slot].head_len = (uint8_t)pieces.head.len;
    memo->slots[slot].tail_len = (uint8_t)pieces.tail.len;
    memcpy(memo->slots[slot].head, pieces.head.at, pieces.head.len);
    memcpy(memo->slots[slot].tail, pieces.tail.at, pieces.tail.len);
    memo->slots[slot].ask = *ask;
    memo->slots[slot].ask.key = slice_of(NULL, 0);
}
