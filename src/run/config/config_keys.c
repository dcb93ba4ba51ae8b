#include "run/config/config_keys.h"

#include <stdlib.h>

#include "base/why.h"
#include "limit/policy/rate.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the table ---- */

#define MEMBER(field) .offset = offsetof(struct config, field), .size = sizeof((struct config *)NULL)->field
#define NUMBER(field, from, to) MEMBER(field), .least = (from), .most = (to)
#define COUNT(...) .form = "count", .parse = rate_parse_count, NUMBER(__VA_ARGS__)
#define SIZE(...) .form = "size", .parse = rate_parse_bytes, NUMBER(__VA_ARGS__)
#define TIME(...) .form = "time", .parse = rate_parse_time, NUMBER(__VA_ARGS__)
#define WORD_LIST(...)                                                                                                 \
    .words = (const char *const[])                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define OR(...) , WORD_LIST(__VA_ARGS__)
#define WORDS(field, ...) MEMBER(field), WORD_LIST(__VA_ARGS__)
#define TEXT(field, text) MEMBER(field), .form = (text)
#define FORM(text) .form = (text)
#define LIST , .is_list = true
#define RELOAD .needs_restart = false
#define RESTART .needs_restart = true
#define FILES .names_file = true
#define IN_WEIR .is_admin = false
#define IN_ADMIN .is_admin = true

static const struct config_key keys[] = {
#define KEY(section, key, value, setter, what, when, text)                                                             \
    {.name = (key), .initial = (value), .set = (setter), .about = (text), IN_##section, what, when},
#define OLD(section, key, now)
#include "run/config/config_keys.def"
#undef KEY
#undef OLD
};

/* Names that older versions had for keys. */
static const struct old_key {
    const char *name, *now;
    bool is_admin;
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

enum section_kind config_key_section(const struct config_key *key)
{
    return key->is_admin ? SECTION_ADMIN : SECTION_WEIR;
}

size_t config_key_find(enum section_kind section, struct slice name)
{
    size_t i = 0;
    while (i < COUNT_OF(keys) &&
           !(config_key_section(&keys[i]) == section && slice_eq_nocase(name, slice_str(keys[i].name))))
        i++;
    return i;
}

const char *config_key_new_name(enum section_kind section, struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(olds); i++)
        if ((olds[i].is_admin ? SECTION_ADMIN : SECTION_WEIR) == section &&
            slice_eq_nocase(name, slice_str(olds[i].name)))
            return olds[i].now;
    return NULL;
}

const char *config_key_name(const struct config_key *key)
{
    return key->name;
}

bool config_key_is_list(const struct config_key *key)
{
    return key->is_list;
}

bool config_key_needs_restart(const struct config_key *key)
{
    return key->needs_restart;
}

bool config_key_is_live(const struct config_key *key)
{
    return !key->needs_restart && !key->names_file;
}

const char *config_key_default(const struct config_key *key)
{
    return key->initial;
}

enum key_result config_key_set(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size)
{
    if (value.len > 0)
        return key->set(key, config, value, why, why_size);
    why_set(why, why_size, "a value is missing");
    return KEY_BAD;
}

void config_key_set_default(const struct config_key *key, struct config *config)
{
    char why[CONFIG_WHY_ROOM];
    if (key->initial != NULL && key->set(key, config, slice_str(key->initial), why, sizeof why) != KEY_SET)
        abort(); /* the table itself is wrong */
}
