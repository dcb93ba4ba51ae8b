#include "run/config/config_include.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/why.h"

/* The pattern behind the folder of `from`; of the folder itself nothing is a pattern. Heap. */
static char *absolute(const char *from, struct slice pattern)
{
    const char *slash = strrchr(from, '/');
    size_t folder = slash != NULL && pattern.at[0] != '/' ? (size_t)(slash - from) + 1 : 0;
    char *path = mem_alloc(2 * folder + pattern.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < folder; i++) {
        if (strchr("*?[]\\", from[i]) != NULL)
            path[len++] = '\\';
        path[len++] = from[i];
    }
    memcpy(path + len, pattern.at, pattern.len);
    path[len + pattern.len] = '\0';
    return path;
}

static void add(struct include_paths *paths, const char *path)
{
    paths->at = mem_realloc(paths->at, paths->count + 1, sizeof *paths->at);
    paths->at[paths->count++] = mem_strndup(path, strlen(path));
}

static int by_byte(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *include_comma_hint(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] == ' ' || pattern.at[i] == '\t')
            return ": several paths are separated by commas";
    return "";
}

bool include_paths(const char *from, struct slice pattern, struct include_paths *paths, char *why, size_t why_size)
{
    *paths = (struct include_paths){0};
    glob_t found = {0};
    char *path = absolute(from, pattern);
    int result = glob(path, GLOB_ERR | GLOB_NOSORT, NULL, &found);
    bool is_pattern = false;
    for (size_t i = 0; i < pattern.len; i++)
        is_pattern = is_pattern || strchr("*?[", pattern.at[i]) != NULL;
    for (size_t i = 0; result == 0 && i < found.gl_pathc; i++)
        add(paths, found.gl_pathv[i]);
    if (result == GLOB_NOMATCH && !is_pattern) {
        globfree(&found);
        free(path);
        return why_set(why, why_size, "there is no file %.*s%s", WHY_SLICE(pattern), include_comma_hint(pattern));
    }
    globfree(&found);
    free(path);
    if (paths->count > 0)
        qsort(paths->at, paths->count, sizeof *paths->at, by_byte);
    return result == 0 || result == GLOB_NOMATCH ||
           why_set(why, why_size, "the folder of %.*s cannot be read", WHY_SLICE(pattern));
}

void include_paths_fini(struct include_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->at[i]);
    free(paths->at);
    *paths = (struct include_paths){0};
}
