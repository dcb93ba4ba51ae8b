/* The password is kept in one heap string and nowhere else. */
#include "run/config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/why.h"

/* All of the file, at most `size` bytes; -1 with errno set. */
static ssize_t read_all(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, out + len, size - len)) != 0) {
        if (got < 0 && errno != EINTR)
            return -1;
        len += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)len;
}

static bool check_line(const char *line, size_t len, char *why, size_t why_size)
{
    if (len == 0)
        return why_set(why, why_size, "the file is empty: put the password in it");
    if (len > SECRET_MAX)
        return why_set(why, why_size, "the password is longer than %d bytes", SECRET_MAX);
    if (memchr(line, '\0', len) != NULL)
        return why_set(why, why_size, "the password holds a NUL byte");
    if (memchr(line, '\n', len) != NULL)
        return why_set(why, why_size, "the file has more than one line: put only the password in it");
    return true;
}

static bool read_line(int fd, char **secret, char *why, size_t why_size)
{
    char text[SECRET_MAX + 3]; /* the longest password, its CRLF, and a byte to notice that it is too long */
    ssize_t got = read_all(fd, text, sizeof text);
    if (got < 0)
        return why_set(why, why_size, "the file cannot be read: %s", strerror(errno));
    size_t len = (size_t)got;
    if (len > 0 && text[len - 1] == '\n')
        len -= len > 1 && text[len - 2] == '\r' ? 2 : 1;
    bool is_good = check_line(text, len, why, why_size);
    if (is_good)
        *secret = mem_strndup(text, len);
    explicit_bzero(text, sizeof text);
    return is_good;
}

static uint64_t age_of(const struct stat *status)
{
    uint64_t changed_ms = (uint64_t)status->st_mtim.tv_sec * 1000 + (uint64_t)status->st_mtim.tv_nsec / NS_PER_MS;
    uint64_t now_ms = clock_unix_ms();
    return changed_ms <= now_ms ? (now_ms - changed_ms) * NS_PER_MS : UINT64_MAX;
}

void secret_forget(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

enum secret_result secret_read(const char *path, char **secret, char *why, size_t why_size)
{
    uint64_t age_ns;
    return secret_look(path, secret, &age_ns, why, why_size);
}

enum secret_result secret_look(const char *path, char **secret, uint64_t *age_ns, char *why, size_t why_size)
{
    struct stat status;
    *age_ns = UINT64_MAX;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        why_set(why, why_size, "%s cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return SECRET_BAD;
    }
    *age_ns = age_of(&status);
    bool is_good = S_ISREG(status.st_mode) ? read_line(fd, secret, why, why_size)
                                           : why_set(why, why_size, "%s is not a regular file", path);
    close(fd);
    if (!is_good)
        return SECRET_BAD;
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return SECRET_READ;
    why_set(why, why_size, "other users can read %s: chmod 600 it", path);
    return SECRET_READ_BY_OTHERS;
}
