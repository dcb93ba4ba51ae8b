#include "upstream/lane/lack.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct row {
    const char *name;
    const char *what;
    const char *remedy;
};

#define LACK(id, name, what, remedy) {name, what, remedy},
#define ACL_LINE LACK_ACL_LINE
static const struct row lacks[LACK_COUNT] = {
#include "upstream/lacks.def"
};
#undef ACL_LINE
#define ACL_LINE LACK_ACL_LINE " " LACK_ACL_CLUSTER
static const struct row lacks_on_cluster[LACK_COUNT] = {
#include "upstream/lacks.def"
};
#undef ACL_LINE
#undef LACK

const char *lack_name(enum lack lack)
{
    return lacks[lack].name;
}

const char *lack_what(enum lack lack)
{
    return lacks[lack].what;
}

const char *lack_remedy(enum lack lack, bool is_cluster)
{
    return (is_cluster ? lacks_on_cluster : lacks)[lack].remedy;
}

/* ---- error replies of Redis ---- */

static bool lack_starts(struct slice text, const char *with)
{
    size_t n = strlen(with);
    return text.len >= n && memcmp(text.at, with, n) == 0;
}

static bool lack_has(struct slice text, const char *part)
{
    return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

/*
 * True if the text behind the first quote begins with the word. The opening quote differs between
 * versions of Redis.
 */
static bool quotes(struct slice text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text.at; at + n < text.at + text.len; at++)
        if (*at == '\'' || *at == '`')
            return strncasecmp(at + 1, word, n) == 0;
    return false;
}

bool lack_is_refused(struct slice reply, const char *command)
{
    return (lack_starts(reply, "-NOPERM ") || lack_starts(reply, "-ERR unknown command")) &&
           quotes(reply, command);
}

static bool lack_is_denied(struct slice error)
{
    return lack_starts(error, "-NOPERM ") || lack_has(error, "ACL failure in script") ||
           lack_has(error, "user executing the script can't ");
}

/*
 * Redis' texts: "No permissions to access a key", "... one of the keys used as arguments", "... to
 * access the 'limit:a' key".
 */
bool lack_is_key(struct slice error)
{
    return lack_is_denied(error) && lack_has(error, " access ") && lack_has(error, " key") &&
           !lack_is_channel(error);
}

bool lack_is_channel(struct slice error)
{
    return lack_is_denied(error) &&
           (lack_has(error, " channel ") || lack_has(error, " channel\r") ||
            lack_has(error, " channels "));
}

bool lack_is_in_script(struct slice error)
{
    return lack_has(error, "' command on this key") || lack_has(error, "ACL failure in script") ||
           lack_has(error, "user executing the script can't ") ||
           lack_has(error, "Unknown Redis command called from script");
}

bool lack_ends_script(struct slice error)
{
    return error.len > 0 && error.at[0] == '-' && lack_has(error, "user_script");
}

static const char *lack_first_word(struct slice reply)
{
    return lack_starts(reply, "-NOAUTH")        ? "NOAUTH"
           : lack_starts(reply, "-ERR unknown") ? "ERR"
                                                : "NOPERM";
}

struct slice lack_error(enum lack lack, bool is_cluster, struct slice reply, char *out)
{
    int n = snprintf(out, LACK_ERROR_ROOM, "-%s Redis %s; %s\r\n", lack_first_word(reply),
                     lack_what(lack), lack_remedy(lack, is_cluster));
    return slice_of(out, n < LACK_ERROR_ROOM ? (size_t)n : LACK_ERROR_ROOM - 1);
}
