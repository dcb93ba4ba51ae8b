#include "base/zone_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/why.h"

/* chosen: the largest file of the database has less than 4 KiB */
#define FILE_BYTES_MAX ((size_t)256 << 10)
#define NAMES_MAX 5000 /* chosen: the database has some 600 names */
#define DEPTH_MAX 3    /* America/Argentina/Salta */

static const char *database(void)
{
    const char *folder = getenv("TZDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/usr/share/zoneinfo";
}

/* ---- names ---- */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_name_char(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '+';
}

/*
 * True if the text may be a part of a name. Each part begins with a capital. Other files of the
 * database are no zones, or count leap seconds (right/).
 */
static bool is_part(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(text[i]))
            return false;
    return len > 0 && is_upper(text[0]);
}

static bool zone_file_is_name(struct slice name)
{
    size_t start = 0;
    for (size_t i = 0; i <= name.len; i++) {
        if (i < name.len && name.at[i] != '/')
            continue;
        if (!is_part(name.at + start, i - start))
            return false;
        start = i + 1;
    }
    return name.len > 0 && name.len <= ZONE_NAME_MAX;
}

/* ---- the nearest name ---- */

struct names {
    char (*at)[ZONE_NAME_MAX + 1];
    size_t n;
};

static void add_folder(struct names *names, const char *folder, unsigned depth);

static void add_name(struct names *names, const char *name, unsigned depth)
{
    char path[PATH_MAX];
    struct stat is;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", database(), name) >= sizeof path || stat(path, &is) != 0)
        return;
    if (S_ISDIR(is.st_mode)) {
        add_folder(names, name, depth + 1);
        return;
    }
    names->at = mem_realloc(names->at, names->n + 1, sizeof names->at[0]);
    snprintf(names->at[names->n++], sizeof names->at[0], "%s", name);
}

/* Adds the names in a folder of the database; "" is the folder of the database. */
static void add_folder(struct names *names, const char *folder, unsigned depth)
{
    char path[PATH_MAX], name[ZONE_NAME_MAX + 1];
    if (depth > DEPTH_MAX || (size_t)snprintf(path, sizeof path, "%s/%s", database(), folder) >= sizeof path)
        return;
    DIR *open = opendir(path);
    struct dirent *entry;
    while (open != NULL && names->n < NAMES_MAX && (entry = readdir(open)) != NULL) {
        int len = snprintf(name, sizeof name, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", entry->d_name);
        if (is_part(entry->d_name, strlen(entry->d_name)) && (size_t)len < sizeof name)
            add_name(names, name, depth);
    }
    if (open != NULL)
        closedir(open);
}

static struct slice zone_file_name_at(const void *arg, size_t i)
{
    const struct names *names = arg;
    return slice_str(names->at[i]);
}

static void say_unknown(struct slice name, char *why, size_t why_size)
{
    struct names names = {NULL, 0};
    add_folder(&names, "", 1);
    struct slice near = near_name(name, names.n, zone_file_name_at, &names);
    if (names.n == 0)
        why_set(why, why_size, "%s has no time zones: install the package tzdata", database());
    else if (near.len > 0)
        why_set(why, why_size, "unknown time zone \"%.*s\" (did you mean %.*s?)", WHY_SLICE(name), WHY_SLICE(near));
    else
        why_set(why, why_size, "unknown time zone \"%.*s\": write a name of the time zone database, like Europe/Berlin",
                WHY_SLICE(name));
    free(names.at);
}

/* ---- files ---- */

/*
 * Reads at most `size` bytes of a file. Returns the number of bytes read; -1: the file cannot be
 * read (errno), or is no regular file.
 */
static ssize_t zone_file_read_file(const char *path, char *out, size_t size)
{
    size_t len = 0;
    ssize_t got = 1;
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    errno = EINVAL;
    if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode))
        got = -1;
    while (got > 0 && len < size) {
        got = read(fd, out + len, size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return got < 0 ? -1 : (ssize_t)len;
}

struct zone *zone_load(struct slice name, char *why, size_t why_size)
{
    char path[PATH_MAX];
    struct zone *zone = NULL;
    if (!zone_file_is_name(name)) {
        say_unknown(name, why, why_size);
        return NULL;
    }
    if ((size_t)snprintf(path, sizeof path, "%s/%.*s", database(), (int)name.len, name.at) >= sizeof path) {
        why_set(why, why_size, "TZDIR is too long");
        return NULL;
    }
    char *file = mem_alloc(FILE_BYTES_MAX);
    ssize_t len = zone_file_read_file(path, file, FILE_BYTES_MAX);
    int error = errno;
    if (len >= 0)
        zone = zone_parse(name, slice_of(file, (size_t)len), why, why_size);
    else if (error == EACCES)
        why_set(why, why_size, "%s: %s", path, strerror(error));
    else
        say_unknown(name, why, why_size);
    free(file);
    return zone;
}
