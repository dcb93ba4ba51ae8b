#include "run/config/socket_words.h"

#include <grp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/split.h"
#include "base/why.h"

#define ANY_WRITE 0222 /* connect(2) needs the right to write to the socket's file */

/* "0660": three octal digits, perhaps behind a zero. */
static bool is_octal(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '7')
            return false;
    return text.len == 3 || (text.len == 4 && text.at[0] == '0');
}

static bool take_mode(struct listen_rights *rights, struct slice value, struct why why)
{
    mode_t mode = 0;
    if (rights->has_mode)
        return why_refuse(why, "mode is given twice");
    if (!is_octal(value))
        return why_refuse(why, "\"%.*s\" is no mode: write three octal digits, as in mode 0660", WHY_SLICE(value));
    for (size_t i = 0; i < value.len; i++)
        mode = (mode_t)(mode * 8 + (mode_t)(value.at[i] - '0'));
    if ((mode & ANY_WRITE) == 0)
        return why_refuse(why, "mode %.*s lets no client connect, which takes the right to write: write mode 0660",
                          WHY_SLICE(value));
    rights->has_mode = true;
    rights->mode = mode;
    return true;
}

static bool take_group(struct listen_rights *rights, struct slice value, struct why why)
{
    int64_t number = 0;
    if (rights->has_group)
        return why_refuse(why, "group is given twice");
    if (value.len == 0)
        return why_refuse(why, "the name of the group is missing: write group NAME");
    char *name = mem_strndup(value.at, value.len);
    const struct group *group = getgrnam(name);
    free(name);
    bool is_number = num_parse(value, &number) && number >= 0 && number < UINT32_MAX;
    if (group == NULL && !is_number)
        return why_refuse(why, "there is no group %.*s on this machine", WHY_SLICE(value));
    rights->has_group = true;
    rights->group = group != NULL ? group->gr_gid : (gid_t)number;
    return true;
}

/* "mode=0660", as other programs have it. */
static bool has_equals(struct slice word)
{
    return word.len > 0 && memchr(word.at, '=', word.len) != NULL;
}

/* "mode", "mode=0660", "group=ops" */
static bool is_word_of_file(struct slice word)
{
    struct slice rest = word, name = word;
    (void)split_next(&rest, '=', &name);
    return slice_eq_nocase(name, SLICE("mode")) || slice_eq_nocase(name, SLICE("group"));
}

static bool refuse_word(struct slice word, bool is_unix, struct why why)
{
    const char *equals = has_equals(word) ? memchr(word.at, '=', word.len) : NULL;
    struct slice name = slice_of(word.at, equals != NULL ? (size_t)(equals - word.at) : 0);
    struct slice value = slice_of(word.at + name.len + (equals != NULL), word.len - name.len - (equals != NULL));
    if (is_unix && is_word_of_file(name))
        return why_refuse(why, "\"%.*s\" has a = too many: write %.*s %.*s", WHY_SLICE(word), WHY_SLICE(name),
                          WHY_SLICE(value));
    if (is_unix)
        return why_refuse(why,
                          "\"%.*s\" is neither mode, group nor proxy, which may stand behind the path; a path has no "
                          "blanks",
                          WHY_SLICE(word));
    if (slice_eq_nocase(word, SLICE("tls")) || slice_eq_nocase(word, SLICE("ssl")))
        return why_refuse(why, "TLS stands in front of the address: write tls:host:port");
    if (is_word_of_file(word))
        return why_refuse(why, "\"%.*s\" is for unix sockets, which have files: unix:/path mode 0660 group www-data",
                          WHY_SLICE(word));
    return why_refuse(why, "\"%.*s\" may not stand there: addresses are separated by commas, and proxy may follow one",
                      WHY_SLICE(word));
}

/* "/x.sock;mode=0666", "/x.sock?mode=0666", "/x.sock:0666": as other programs have it. */
static bool has_words_in_path(struct slice address)
{
    struct slice rest = address, last = address;
    while (split_next(&rest, ':', &last))
        ;
    bool has_mode = last.len < address.len && is_octal(last);
    return has_mode || memchr(address.at, ';', address.len) != NULL || memchr(address.at, '?', address.len) != NULL ||
           memmem(address.at, address.len, "mode=", 5) != NULL || memmem(address.at, address.len, "group=", 6) != NULL;
}

bool socket_words_parse(struct socket_words *words, struct slice text, char *why_out, size_t why_size)
{
    static const struct slice scheme = {"unix:", 5};
    struct why why = {why_out, why_size};
    struct slice rest = text, word, value;
    *words = (struct socket_words){0};
    if (!split_word(&rest, &words->address))
        return why_refuse(why, "an address is missing beside a comma");
    if (is_word_of_file(words->address))
        return why_refuse(why, "\"%.*s\" stands behind a path, without a comma: unix:/path mode 0660 group www-data",
                          WHY_SLICE(text));
    bool is_unix = words->address.at[0] == '/' || (words->address.len >= scheme.len &&
                                                   slice_eq_nocase(slice_of(words->address.at, scheme.len), scheme));
    if (is_unix && has_words_in_path(words->address))
        return why_refuse(
            why, "\"%.*s\" is more than a path: mode and group stand behind it, with blanks: unix:/path mode 0660",
            WHY_SLICE(words->address));
    while (split_word(&rest, &word)) {
        bool is_mode = is_unix && slice_eq_nocase(word, SLICE("mode"));
        bool is_group = is_unix && slice_eq_nocase(word, SLICE("group"));
        if (slice_eq_nocase(word, SLICE("proxy")) && !words->has_proxy)
            words->has_proxy = true;
        else if (!is_mode && !is_group)
            return refuse_word(word, is_unix, why);
        else if (!split_word(&rest, &value))
            return why_refuse(why, "%s",
                              is_mode ? "the mode is missing: write mode 0660"
                                      : "the name of the group is missing: write group NAME");
        else if (!(is_mode ? take_mode : take_group)(&words->rights, value, why))
            return false;
    }
    return true;
}
