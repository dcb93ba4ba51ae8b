#include "run/config/config_keys.h"

#include "limit/policy/rate.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the table ---- */

#define MEMBER(field)                                                                              \
    .offset = offsetof(struct config, field), .size = sizeof((struct config *)NULL)->field
#define NUMBER(field, from, to) MEMBER(field), .least = (from), .most = (to)
#define COUNT(...) .form = "count", .parse = rate_parse_count, NUMBER(__VA_ARGS__)
#define SIZE(...) .form = "size", .parse = rate_parse_bytes, NUMBER(__VA_ARGS__)
#define TIME(...) .form = "time", .parse = rate_parse_time, NUMBER(__VA_ARGS__)
#define WORD_LIST(...)                                                                             \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define OR(...) , WORD_LIST(__VA_ARGS__)
#define WORDS(field, ...) MEMBER(field), WORD_LIST(__VA_ARGS__)
#define TEXT(field, text) MEMBER(field), .form = (text)
#define FORM(text) .form = (text)
#define LIST , .is_list = true
#define RELOAD .needs_restart = false
#define RESTART .needs_restart = true
#define FILES .names_file = true
#define IN_WEIR .section = SECTION_WEIR
#define IN_ADMIN .section = SECTION_ADMIN

static const struct config_key keys[] = {
#define KEY(section, key, value, setter, what, when, text)                                         \
    {.name = (key), .initial = (value), .set = (setter), .about = (text), IN_##section, what, when},
#define OLD(section, key, now)
#include "run/config/config_keys.def"
#undef KEY
#undef OLD
};

/* Names of keys in older versions. */
static const struct old_key {
    const char *name, *now;
    enum section_kind section;
} olds[] = {
#define KEY(section, key, value, setter, what, when, text)
#define OLD(section, key, was) {.name = (key), .now = (was), IN_##section},
#include "run/config/config_keys.def"
#undef KEY
#undef OLD
};

size_t config_keys_count(void)
{
    return COUNT_OF(keys);
}

const struct config_key *config_key_at(size_t i)
{
    return &keys[i];
}

const struct config_key *config_key_find(enum section_kind section, struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i].section == section && slice_eq_nocase(name, slice_str(keys[i].name)))
            return &keys[i];
    return NULL;
}

const char *config_key_new_name(enum section_kind section, struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(olds); i++)
        if (olds[i].section == section && slice_eq_nocase(name, slice_str(olds[i].name)))
            return olds[i].now;
    return NULL;
}

/* ---- the output of weir --keys ---- */

/* Prints a text without the backquotes around words of the file. */
static void print_plain(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text != '`')
            fputc(*text, out);
}

/* Prints "shared or private", or "a, b or c". */
static void config_keys_print_words(FILE *out, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        fprintf(out, "%s%s", before, words[i]);
    }
}

/* Prints "count from 1 to 256, or cores; needs a restart". */
static void print_value(FILE *out, const struct config_key *key)
{
    if (key->form != NULL)
        print_plain(out, key->form);
    if (key->least != NULL)
        fprintf(out, " from %s to %s", key->least, key->most);
    if (key->words != NULL) {
        fputs(key->form == NULL ? "" : key->words[1] != NULL ? ", " : ", or ", out);
        config_keys_print_words(out, key->words);
    }
    if (key->is_list)
        fputs("; several, separated by commas", out);
    if (key->needs_restart)
        fputs("; needs a restart", out);
}

static void print_key(FILE *out, const struct config_key *key)
{
    fputs("\n; ", out);
    print_plain(out, key->about);
    fputs("\n; ", out);
    print_value(out, key);
    fprintf(out, "\n;%s =%s%s\n", key->name, key->initial != NULL ? " " : "",
            key->initial != NULL ? key->initial : "");
}

void config_help_print(FILE *out)
{
    enum section_kind section = SECTION_LIMIT; /* neither [weir] nor [admin] */
    for (size_t i = 0; i < config_keys_count(); i++) {
        const struct config_key *key = config_key_at(i);
        if (key->section != section)
            fprintf(out, "%s[%s]\n", i == 0 ? "" : "\n",
                    key->section == SECTION_ADMIN ? "admin" : "weir");
        section = key->section;
        print_key(out, key);
    }
}
