#include "quota/answer.h"

#include <string.h>

#include "base/num.h"

#define CRLF_LEN 2

bool answer_line(struct answer *answer, char *type, struct slice *text)
{
    const char *cr = memchr(answer->at, '\r', (size_t)(answer->end - answer->at));
    if (cr == NULL || answer->end - cr < CRLF_LEN || cr == answer->at)
        return false;
    *type = answer->at[0];
    *text = slice_of(answer->at + 1, (size_t)(cr - answer->at - 1));
    answer->at = cr + CRLF_LEN;
    return true;
}

bool answer_number(struct answer *answer, int64_t *number, struct slice *error)
{
    char type;
    struct slice text;
    int64_t len;
    if (!answer_line(answer, &type, &text))
        return false;
    if (type == ':')
        return num_parse(text, number);
    if (type != '$' || !num_parse(text, &len) || len < 0 || len > answer->end - answer->at - CRLF_LEN)
        return false;
    *number = 0;
    *error = slice_of(answer->at, (size_t)len);
    answer->at += len + CRLF_LEN;
    return true;
}
