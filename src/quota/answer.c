#include "quota/answer.h"

#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/slice.h"

#define CRLF_LEN 2

struct answer answer_of(struct slice text)
{
    if (text.len == 0)
        text = SLICE(""); /* avoids arithmetic on NULL */
    return (struct answer){text.at, text.at + text.len};
}

static bool take_crlf(struct answer *answer)
{
    if (answer->end - answer->at < CRLF_LEN || memcmp(answer->at, "\r\n", CRLF_LEN) != 0)
        return false;
    answer->at += CRLF_LEN;
    return true;
}

/* Reads a type byte and the rest of its line. */
static bool answer_take_line(struct answer *answer, char *type, struct slice *text)
{
    const char *start = answer->at;
    const char *cr = memchr(start, '\r', (size_t)(answer->end - start));
    if (cr == NULL || cr == start)
        return false;
    *type = start[0];
    *text = slice_of(start + 1, (size_t)(cr - start - 1));
    answer->at = cr;
    return take_crlf(answer);
}

/* Reads the bytes behind the header of a bulk string. */
static bool take_data(struct answer *answer, struct slice header, struct slice *bulk)
{
    int64_t len;
    if (!num_parse(header, &len) || len < 0 || len > answer->end - answer->at)
        return false;
    *bulk = slice_of(answer->at, (size_t)len);
    answer->at += len;
    return take_crlf(answer);
}

/* Reads a bulk string; nil is refused. */
static bool answer_take_bulk(struct answer *answer, struct slice *bulk)
{
    char type;
    struct slice header;
    return answer_take_line(answer, &type, &header) && type == '$' &&
           take_data(answer, header, bulk);
}

bool answer_number(struct answer *answer, int64_t *number, struct slice *error)
{
    char type;
    struct slice text;
    struct slice why;
    if (!answer_take_line(answer, &type, &text))
        return false;
    if (type == ':')
        return num_parse(text, number);
    if (type != '$' || !take_data(answer, text, &why) || why.len == 0)
        return false;
    *number = 0;
    *error = why;
    return true;
}

bool answer_begin(struct slice text, size_t n, struct answer *first)
{
    struct answer answer = answer_of(text);
    char type;
    struct slice header;
    int64_t count;
    if (!answer_take_line(&answer, &type, &header) || type != '*' || !num_parse(header, &count) ||
        count < 0 || (uint64_t)count != n)
        return false;
    *first = answer;
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        struct slice error;
        if (!answer_number(&answer, &number, &error))
            return false;
    }
    return answer_is_over(&answer);
}

/* ---- numbers ---- */

/* Reads exactly n integers, separated by blanks. */
static bool read_integers(struct slice text, int64_t *numbers, size_t n)
{
    struct slice word;
    for (size_t i = 0; i < n; i++)
        if (!split_word(&text, &word) || !num_parse(word, &numbers[i]))
            return false;
    return text.len == 0;
}

/*
 * Reads the penalty of a key. A key under a penalty has the text "number left_us granted" in place
 * of its first number.
 */
static void read_hold(int64_t *first, struct slice *error, struct quota_hold *hold)
{
    enum { NUMBER, LEFT_US, GRANTED, HELD_NUMBERS };
    int64_t held[HELD_NUMBERS];
    if (error->at == NULL || !read_integers(*error, held, HELD_NUMBERS) || held[LEFT_US] < 1 ||
        held[LEFT_US] > QUOTA_MOST || held[GRANTED] < 0)
        return;
    *first = held[NUMBER];
    *hold = (struct quota_hold){held[LEFT_US] * (int64_t)NS_PER_US, (uint64_t)held[GRANTED]};
    *error = slice_of(NULL, 0);
}

static bool answer_read_key(struct answer *answer, const struct decision_request *ask,
                            int64_t *numbers, struct quota_hold *hold, struct slice *error)
{
    unsigned n = quota_numbers(ask);
    for (unsigned i = 0; i < n; i++) {
        struct slice text = slice_of(NULL, 0);
        if (!answer_number(answer, &numbers[i], &text))
            return false;
        if (i == 0)
            read_hold(&numbers[0], &text, hold);
        *error = text.at != NULL ? text : *error;
    }
    return true;
}

bool quota_numbers_read(struct answer *answer, const struct decision_request *ask, int64_t *numbers,
                        struct quota_hold *holds, struct slice *error)
{
    for (unsigned p = 0; p < decision_request_count(ask);
         numbers += quota_numbers(decision_request_at(ask, p)), p++)
        if (!answer_read_key(answer, decision_request_at(ask, p), numbers, &holds[p], error))
            return false;
    return true;
}

/* ---- releases ---- */

static bool answer_take_word(struct answer *answer, struct slice word)
{
    struct slice bulk;
    return answer_take_bulk(answer, &bulk) && slice_eq(bulk, word);
}

static bool answer_take_count(struct answer *answer)
{
    char type;
    struct slice text;
    int64_t count;
    return answer_take_line(answer, &type, &text) && type == ':' && num_parse(text, &count) &&
           count > 0;
}

/*
 * True if the frame has three words and begins with these two. *answer is left at the third word.
 */
static bool opens(struct slice frame, struct slice kind, struct slice channel,
                  struct answer *answer)
{
    char type;
    struct slice count;
    *answer = answer_of(frame);
    return answer_take_line(answer, &type, &count) && type == '*' && slice_eq(count, SLICE("3")) &&
           answer_take_word(answer, kind) && answer_take_word(answer, channel);
}

enum release_news release_read(struct slice frame, struct slice channel, struct slice *key)
{
    struct answer answer;
    if (opens(frame, SLICE("message"), channel, &answer) && answer_take_bulk(&answer, key) &&
        answer_is_over(&answer))
        return RELEASE_KEY;
    if (opens(frame, SLICE("subscribe"), channel, &answer) && answer_take_count(&answer) &&
        answer_is_over(&answer))
        return RELEASE_SUBSCRIBED;
    return RELEASE_NOTHING;
}
