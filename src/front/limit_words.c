#include "front/limit_words.h"

#include <stdio.h>

#include "base/num.h"
#include "base/why.h"

void limit_words_error(const struct limit_words *words, size_t i, struct build *out)
{
    char text[160];
    int len = i < words->n ? snprintf(text, sizeof text, "ERR syntax error, unexpected '%.*s'", WHY_SLICE(words->at[i]))
                           : snprintf(text, sizeof text, "ERR syntax error, something is missing behind '%.*s'",
                                      WHY_SLICE(words->at[words->n - 1]));
    build_error(out, slice_of(text, (size_t)len));
}

bool limit_words_count(const struct limit_words *words, size_t i, size_t otherwise, size_t *n)
{
    int64_t number;
    *n = otherwise;
    if (i >= words->n)
        return true;
    if (!num_parse(words->at[i], &number) || number < 1)
        return false;
    *n = (size_t)number;
    return true;
}
