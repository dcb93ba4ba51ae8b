#include "upstream/own_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

bool own_words_in_line(struct slice line)
{
    static const char *const words[] = {"\"" OWN_HELLO "\"",  "\"" OWN_RESET "\"",  "\"" OWN_PUBLISH "\"",
                                        "\"" OWN_CLIENT "\"", "\"" OWN_SELECT "\"", "\"" OWN_AUTH "\""};
    static const char before[] = "] ";
    const char *at = memmem(line.at, line.len, before, sizeof before - 1);
    if (at == NULL)
        return false;
    at += sizeof before - 1;
    size_t left = line.len - (size_t)(at - line.at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (left >= strlen(words[i]) && memcmp(at, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}
