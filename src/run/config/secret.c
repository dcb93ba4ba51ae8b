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

/* Reads all of the file, at most `size` bytes. Returns the length; -1 with errno set. */
static ssize_t secret_read_all(int fd, char *out, size_t size)
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

static bool secret_check_line(const char *line, size_t len, struct why why)
{
    if (len == 0)
        return why_refuse(why, "the file is empty: write the password into it");
    if (len > SECRET_MAX)
        return why_refuse(why, "the password is longer than %d bytes", SECRET_MAX);
    if (memchr(line, '\0', len) != NULL)
        return why_refuse(why, "the password holds a NUL byte");
    if (memchr(line, '\n', len) != NULL)
        return why_refuse(why, "the file has more than one line: write only the password into it");
    return true;
}

static bool secret_read_line(int fd, char **secret, struct why why)
{
    /* the longest password, its CRLF, and a byte to detect a longer one */
    char text[SECRET_MAX + 3];
    ssize_t got = secret_read_all(fd, text, sizeof text);
    if (got < 0)
        return why_refuse(why, "the file cannot be read: %s", strerror(errno));
    size_t len = (size_t)got;
    if (len > 0 && text[len - 1] == '\n')
        len -= len > 1 && text[len - 2] == '\r' ? 2 : 1;
    bool is_good = secret_check_line(text, len, why);
    if (is_good)
        *secret = mem_strndup(text, len);
    explicit_bzero(text, sizeof text);
    return is_good;
}

static uint64_t secret_age_of(const struct stat *status)
{
    uint64_t changed_ms =
        (uint64_t)status->st_mtim.tv_sec * 1000 + (uint64_t)status->st_mtim.tv_nsec / NS_PER_MS;
    uint64_t now_ms = clock_unix_ms();
    return changed_ms <= now_ms ? (now_ms - changed_ms) * NS_PER_MS : UINT64_MAX;
}

void secret_forget(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

bool secret_read(const char *path, char **secret, uint64_t *age_ns, struct why why)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (age_ns != NULL)
        *age_ns = UINT64_MAX;
    if (fd < 0 || fstat(fd, &status) != 0) {
        why_refuse(why, "%s cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (age_ns != NULL)
        *age_ns = secret_age_of(&status);
    bool is_good = S_ISREG(status.st_mode) ? secret_read_line(fd, secret, why)
                                           : why_refuse(why, "%s is not a regular file", path);
    close(fd);
    if (is_good && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        why_refuse(why, "other users can read %s: chmod 600 it", path);
    return is_good;
}
