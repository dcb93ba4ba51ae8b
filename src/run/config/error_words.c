#include "run/config/error_words.h"

static const struct row {
    struct slice word;
    enum error_word verdict;
} rows[] = {
#define WORD(text, verdict) {{text, sizeof(text) - 1}, ERROR_WORD_##verdict},
#include "run/config/error_words.def"
#undef WORD
};

enum error_word error_word_find(struct slice word)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_eq(word, rows[i].word))
            return rows[i].verdict;
    return ERROR_WORD_NONE;
}

struct slice error_word_in(struct slice name)
{
    for (size_t i = 0, end; i < name.len; i = end + 1) {
        for (end = i; end < name.len && name.at[end] >= 'A' && name.at[end] <= 'Z'; end++)
            ;
        if (error_word_find(slice_of(name.at + i, end - i)) != ERROR_WORD_NONE)
            return slice_of(name.at + i, end - i);
    }
    return SLICE("");
}
