#include "quota/answer.h"

#include <string.h>

#include "base/num.h"
#include "base/split.h"

#define CRLF_LEN 2

struct answer answer_of(struct slice text)
{
    if (text.len == 0)
        text = SLICE(""); /* no arithmetic on NULL */
    return (struct answer){text.at, text.at + text.len};
}

static bool take_crlf(struct answer *answer)
{
    if (answer->end - answer->at < CRLF_LEN || memcmp(answer->at, "\r\n", CRLF_LEN) != 0)
        return false;
    answer->at += CRLF_LEN;
    return true;
}

bool answer_line(struct answer *answer, char *type, struct slice *text)
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

/* What stands behind the header. */
static bool take_data(struct answer *answer, struct slice header, struct slice *bulk)
{
    int64_t len;
    if (!num_parse(header, &len) || len < 0 || len > answer->end - answer->at)
        return false;
    *bulk = slice_of(answer->at, (size_t)len);
    answer->at += len;
    return take_crlf(answer);
}

bool answer_bulk(struct answer *answer, struct slice *bulk)
{
    char type;
    struct slice header;
    return answer_line(answer, &type, &header) && type == '$' && take_data(answer, header, bulk);
}

bool answer_number(struct answer *answer, int64_t *number, struct slice *error)
{
    char type;
    struct slice text;
    struct slice why;
    if (!answer_line(answer, &type, &text))
        return false;
    if (type == ':')
        return num_parse(text, number);
    if (type != '$' || !take_data(answer, text, &why) || why.len == 0)
        return false;
    *number = 0;
    *error = why;
    return true;
}

bool answer_held(struct slice text, int64_t *numbers, size_t n)
{
    struct slice word;
    for (size_t i = 0; i < n; i++)
        if (!split_word(&text, &word) || !num_parse(word, &numbers[i]))
            return false;
    return text.len == 0;
}

bool answer_begin(struct slice text, size_t n, struct answer *first)
{
    struct answer answer = answer_of(text);
    char type;
    struct slice header;
    int64_t count;
    if (!answer_line(&answer, &type, &header) || type != '*' || !num_parse(header, &count) || count < 0 ||
        (uint64_t)count != n)
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
