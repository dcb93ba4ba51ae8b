#include "upstream/lane/own_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

/*
 * What follows a word decides too: in weir's spelling anybody may write, and nobody's message, and no CLIENT KILL, is
 * to be hidden so.
 */
static const struct shape {
    struct slice begin;
    struct slice end;
} shapes[] = {
    {TEXT("\"" OWN_HELLO "\""), TEXT("")},
    {TEXT("\"" OWN_PING "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_RESET "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_QUIT "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_AUTH "\" \"(redacted)\""), TEXT("")},
    {TEXT("\"" OWN_SELECT "\""), TEXT("")},
    {TEXT("\"" OWN_CLIENT "\" \"SETINFO\" "), TEXT("")},
    {TEXT("\"" OWN_SET "\" "), TEXT("weir:written\" \"\" \"PX\" \"1\"\r\n")},
};

static bool fits(struct slice text, const struct shape *shape)
{
    return text.len >= shape->begin.len + shape->end.len && memcmp(text.at, shape->begin.at, shape->begin.len) == 0 &&
           memcmp(text.at + text.len - shape->end.len, shape->end.at, shape->end.len) == 0;
}

bool own_words_in_line(struct slice bytes)
{
    static const char before[] = "] ";
    const char *end = memmem(bytes.at, bytes.len, "\r\n", 2);
    if (end == NULL)
        return false;
    struct slice line = slice_of(bytes.at, (size_t)(end - bytes.at) + 2);
    const char *at = memmem(line.at, line.len, before, sizeof before - 1);
    if (at == NULL)
        return false;
    at += sizeof before - 1;
    struct slice said = slice_of(at, line.len - (size_t)(at - line.at));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (fits(said, &shapes[i]))
            return true;
    return false;
}
