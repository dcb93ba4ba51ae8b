#include "limit/command/hello.h"

#include "base/num.h"
#include "base/why.h"
#include "resp/argv.h"

static bool wrong(char *error, const char *text)
{
    return why_set(error, HELLO_ERROR_ROOM, "%s", text);
}

bool hello_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] < '!' || name.at[i] > '~')
            return false;
    return true;
}

static bool read_version(struct hello *hello, struct slice word, char *error)
{
    int64_t version;
    if (!num_parse(word, &version))
        return wrong(error, "ERR Protocol version is not an integer or out of range");
    if (version < 2 || version > 3)
        return wrong(error, "NOPROTO unsupported protocol version");
    hello->protocol = (uint8_t)version;
    return true;
}

static bool read_option(struct hello *hello, struct argv_walk *walk, struct slice option, char *error)
{
    if (slice_is_word(option, SLICE("auth")) && walk->left >= 2 && !hello->has_auth) {
        hello->has_auth = true;
        return argv_next(walk, &hello->user) && argv_next(walk, &hello->password);
    }
    if (slice_is_word(option, SLICE("setname")) && walk->left >= 1) {
        hello->has_name = true;
        if (argv_next(walk, &hello->name) && hello_is_name(hello->name))
            return true;
        return wrong(error, HELLO_BAD_NAME);
    }
    return why_set(error, HELLO_ERROR_ROOM, "ERR Syntax error in HELLO option '%.*s'",
                   (int)(option.len < 128 ? option.len : 128), option.at);
}

bool hello_read(struct hello *hello, struct slice request, char *error)
{
    struct argv_walk walk;
    struct slice word;
    *hello = (struct hello){0};
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word) || !argv_next(&walk, &word))
        return true; /* HELLO alone */
    if (!read_version(hello, word, error))
        return false;
    while (argv_next(&walk, &word))
        if (!read_option(hello, &walk, word, error))
            return false;
    return true;
}

bool hello_logs_in(struct slice request)
{
    char error[HELLO_ERROR_ROOM];
    struct hello hello;
    (void)!hello_read(&hello, request, error);
    return hello.has_auth;
}

bool hello_read_auth(struct hello *hello, struct slice request, char *error)
{
    struct argv_walk walk;
    struct slice word, first;
    *hello = (struct hello){.has_auth = true};
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word) || walk.left > 2 || !argv_next(&walk, &first))
        return wrong(error, "ERR syntax error");
    hello->is_short = !argv_next(&walk, &hello->password);
    hello->user = hello->is_short ? SLICE("default") : first;
    if (hello->is_short)
        hello->password = first;
    return true;
}
