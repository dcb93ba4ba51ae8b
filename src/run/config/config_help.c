#include "run/config/config_help.h"

#include "run/config/config_keys.h"

/* Of a text in which `so` is a word of the file. */
static void print_plain(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text != '`')
            fputc(*text, out);
}

/* "shared or private", "a, b or c" */
static void print_words(FILE *out, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        fprintf(out, "%s%s", before, words[i]);
    }
}

/* "count from 1 to 256, or cores; needs a restart" */
static void print_value(FILE *out, const struct config_key *key)
{
    if (key->form != NULL)
        print_plain(out, key->form);
    if (key->least != NULL)
        fprintf(out, " from %s to %s", key->least, key->most);
    if (key->words != NULL) {
        fputs(key->form == NULL ? "" : key->words[1] != NULL ? ", " : ", or ", out);
        print_words(out, key->words);
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
    fprintf(out, "\n;%s =%s%s\n", key->name, key->initial != NULL ? " " : "", key->initial != NULL ? key->initial : "");
}

void config_help_print(FILE *out)
{
    enum section_kind section = SECTION_LIMIT; /* neither of both */
    for (size_t i = 0; i < config_keys_count(); i++) {
        const struct config_key *key = config_key_at(i);
        if (config_key_section(key) != section)
            fprintf(out, "%s[%s]\n", i == 0 ? "" : "\n", config_key_section(key) == SECTION_ADMIN ? "admin" : "weir");
        section = config_key_section(key);
        print_key(out, key);
    }
}
