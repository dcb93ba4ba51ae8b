/* Loads configurations from texts, in a temporary folder (folder_kit.h), and keeps the messages. */
#ifndef WEIR_TESTS_CONFIG_KIT_H
#define WEIR_TESTS_CONFIG_KIT_H

#include <stdio.h>
#include <string.h>

#include "folder_kit.h"
#include "run/config/config_build.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct said {
    char text[65536];
    unsigned errors, warnings;
};

static struct said said;

static inline void on_report(void *arg, bool is_error, const char *line)
{
    struct said *s = arg;
    size_t len = strlen(s->text);
    is_error ? s->errors++ : s->warnings++;
    snprintf(s->text + len, sizeof s->text - len, "%s%s\n", is_error ? "" : "warning: ", line);
}

static inline void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static inline struct config *load(const char *path)
{
    said = (struct said){0};
    struct config_file file = {.path = path, .report = on_report, .arg = &said};
    struct config *config = config_read(&file, table);
    config_file_fini(&file);
    return config;
}

static inline struct config *load_text(const char *text)
{
    write_bytes("weir.conf", text, strlen(text));
    return load("weir.conf");
}

/* ---- a table of mistakes ---- */

struct mistake {
    const char *text;
    const char *said;
};

static inline void check_mistakes(const struct mistake *mistakes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config *config = load_text(mistakes[i].text);
        assert_string_equal(said.text, mistakes[i].said);
        assert_null(config);
        assert_int_not_equal(said.errors, 0);
    }
}

#endif
