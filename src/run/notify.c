#include "run/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE_ROOM 1024

static bool is_held; /* the main thread's */

/* A path, or "@name" for an abstract one. Its length; 0: it is none. */
static socklen_t find(const char *name, struct sockaddr_un *to)
{
    size_t len = name ? strlen(name) : 0;
    if (len < 2 || len >= sizeof to->sun_path || (name[0] != '/' && name[0] != '@'))
        return 0;
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, name, len);
    if (name[0] == '@')
        to->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify(const char *format, ...)
{
    struct sockaddr_un to;
    char message[MESSAGE_ROOM];
    socklen_t to_len = is_held ? 0 : find(getenv("NOTIFY_SOCKET"), &to);
    if (to_len == 0)
        return;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || len < 0)
        return;
    size_t n = (size_t)len < sizeof message ? (size_t)len : sizeof message - 1;
    (void)!sendto(fd, message, n, MSG_NOSIGNAL, (const struct sockaddr *)&to, to_len);
    close(fd);
}

void notify_hold(bool is_held_now)
{
    is_held = is_held_now;
}
