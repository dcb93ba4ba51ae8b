#include "upstream/lane/unsolicited.h"

#include <string.h>

#include "upstream/lane/calls.h"

/*
 * The words of subscribe and unsubscribe confirmations, and the count of the lane that each word
 * updates.
 */
static const struct confirmation {
    struct slice word;
    size_t count;
} confirmations[] = {
    {{"subscribe", 9}, offsetof(struct lane, channels)},
    {{"unsubscribe", 11}, offsetof(struct lane, channels)},
    {{"psubscribe", 10}, offsetof(struct lane, patterns)},
    {{"punsubscribe", 12}, offsetof(struct lane, patterns)},
    {{"ssubscribe", 10}, offsetof(struct lane, shard_channels)},
    {{"sunsubscribe", 12}, offsetof(struct lane, shard_channels)},
};

uint32_t *unsolicited_confirmed(struct lane *lane, struct slice word)
{
    for (size_t i = 0; i < sizeof confirmations / sizeof confirmations[0]; i++)
        if (slice_eq(word, confirmations[i].word))
            return (uint32_t *)(void *)((char *)lane + confirmations[i].count);
    return NULL;
}

bool unsolicited_ends_unasked(const struct lane *lane, const struct call *call, struct slice word)
{
    bool is_asked = call != NULL && call->flow == FLOW_UNSUBSCRIBE;
    return !is_asked && lane->shard_channels > 0 && slice_eq(word, SLICE("sunsubscribe"));
}

void unsolicited_note_confirmation(struct lane *lane, uint32_t *count)
{
    int64_t total = glimpse_last_integer(&lane->glimpse);
    uint32_t others = count == &lane->channels   ? lane->patterns
                      : count == &lane->patterns ? lane->channels
                                                 : 0;
    bool was_subscribed = lane_is_subscribed(lane);
    if (total >= (int64_t)others && total <= UINT32_MAX)
        *count = (uint32_t)total - others;
    inflight_subscribe(&lane->base->counts, was_subscribed, lane_is_subscribed(lane));
}

static bool is_message_word(struct slice word)
{
    return slice_eq(word, SLICE("message")) || slice_eq(word, SLICE("pmessage")) ||
           slice_eq(word, SLICE("smessage"));
}

/* In RESP3 every unsolicited frame is a push, and every array is a reply. */
static bool has_unsolicited_arrays(const struct lane *lane)
{
    return lane_is_subscribed(lane) && lane->key.protocol != 3;
}

bool unsolicited_is_monitored(const struct lane *lane, struct slice head)
{
    return lane_is_monitoring(lane) && head.len > 1 && head.at[0] == '+' &&
           (unsigned char)(head.at[1] - '0') <= 9;
}

bool unsolicited_is(const struct lane *lane, struct slice word)
{
    if (lane->scan.kind == '>')
        return true;
    if (lane->scan.kind == '*')
        return has_unsolicited_arrays(lane) && is_message_word(word);
    return unsolicited_is_monitored(lane, slice_of(lane->glimpse.head, lane->glimpse.n_head));
}

bool unsolicited_may_be_message(const struct lane *lane, struct slice head)
{
    if (head.at[0] == '>' || unsolicited_is_monitored(lane, head))
        return true;
    return head.at[0] == '*' && has_unsolicited_arrays(lane) &&
           !(head.len > 1 && head.at[1] == '2');
}

/*
 * The first word of a push, as far as the word has arrived. In ">3\r\n$7\r\nmessage\r\n" the first
 * word is "message".
 */
static struct slice unsolicited_first_word(struct slice bytes)
{
    const char *end = bytes.at + bytes.len;
    const char *word = bytes.at;
    for (int i = 0; i < 2 && word != NULL; i++) {
        word = memchr(word, '\n', (size_t)(end - word));
        word = word != NULL ? word + 1 : NULL;
    }
    const char *cr = word != NULL ? memchr(word, '\r', (size_t)(end - word)) : NULL;
    return cr != NULL ? slice_of(word, (size_t)(cr - word)) : slice_of("", 0);
}

bool unsolicited_begins(struct lane *lane, const struct call *call, struct slice bytes)
{
    if (bytes.at[0] != '>')
        return unsolicited_is_monitored(lane, bytes);
    if (!unsolicited_is_confirmed(call))
        return true;
    struct slice word = unsolicited_first_word(bytes);
    return word.len > 0 && unsolicited_confirmed(lane, word) == NULL;
}
