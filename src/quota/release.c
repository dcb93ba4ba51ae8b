#include "quota/release.h"

#include <stdint.h>

#include "base/num.h"
#include "quota/answer.h"

static bool take_word(struct answer *answer, struct slice word)
{
    struct slice bulk;
    return answer_bulk(answer, &bulk) && slice_eq(bulk, word);
}

static bool take_count(struct answer *answer)
{
    char type;
    struct slice text;
    int64_t count;
    return answer_line(answer, &type, &text) && type == ':' && num_parse(text, &count) && count > 0;
}

/* The beginning of a frame of three whose first two words are these; its third is left in *answer. */
static bool opens(struct slice frame, struct slice kind, struct slice channel, struct answer *answer)
{
    char type;
    struct slice count;
    *answer = answer_of(frame);
    return answer_line(answer, &type, &count) && type == '*' && slice_eq(count, SLICE("3")) &&
           take_word(answer, kind) && take_word(answer, channel);
}

enum release_news release_read(struct slice frame, struct slice channel, struct slice *key)
{
    struct answer answer;
    if (opens(frame, SLICE("message"), channel, &answer) && answer_bulk(&answer, key) && answer_is_over(&answer))
        return RELEASE_KEY;
    if (opens(frame, SLICE("subscribe"), channel, &answer) && take_count(&answer) && answer_is_over(&answer))
        return RELEASE_SUBSCRIBED;
    return RELEASE_NOTHING;
}
