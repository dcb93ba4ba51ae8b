#include "run/succession.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "run/config/address.h"

#define SOCKETS_MAX 65536

struct found {
    int fd; /* -1: taken */
    bool is_systemds;
    struct endpoint at;
};

/* ---- the environment ---- */

static void forget_environment(void)
{
    static const char *const names[] = {"LISTEN_PID",   "LISTEN_FDS",    "LISTEN_FDNAMES",
                                        UPGRADE_PID,    UPGRADE_SOCKETS, UPGRADE_ADMIN_COMMANDS,
                                        UPGRADE_OFFERS, UPGRADE_NODES,   UPGRADE_REASONS};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

/* True if fd is a listening stream socket, the only kind that can be used. */
static bool succession_adopt(struct found *found, int fd)
{
    int type = 0, listens = 0;
    socklen_t type_size = sizeof type, listens_size = sizeof listens;
    found->at.length = sizeof found->at.address;
    bool is_good =
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) == 0 && listens != 0 &&
        getsockname(fd, (struct sockaddr *)&found->at.address, &found->at.length) == 0 &&
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 &&
        fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
    if (!is_good)
        log_error("descriptor %d from the service manager is not a listening stream socket", fd);
    found->fd = is_good ? fd : -1;
    return is_good;
}

static bool adopt_all(struct inherited *inherited, int first, size_t n)
{
    inherited->sockets = mem_zalloc(n, sizeof *inherited->sockets);
    for (inherited->n = 0; inherited->n < n; inherited->n++)
        if (!succession_adopt(&inherited->sockets[inherited->n], first + (int)inherited->n))
            return false;
    return true;
}

/* Reads the whole file and closes it. The caller frees. NULL: the file cannot be read. */
static char *succession_read_all(int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
        return NULL;
    size_t len = (size_t)file.st_size, done = 0;
    char *text = mem_zalloc(len + 1, 1);
    ssize_t n = 0;
    while (done < len && (n = pread(fd, text + done, len - done, (off_t)done)) > 0)
        done += (size_t)n;
    close(fd);
    if (done == len)
        return text;
    free(text);
    return NULL;
}

struct inherited *inherit_find(void)
{
    struct inherited *inherited = mem_zalloc(1, sizeof *inherited);
    bool is_upgrade = num_of_environment(UPGRADE_PID, INT32_MAX) == getppid();
    bool is_activated = !is_upgrade && num_of_environment("LISTEN_PID", INT32_MAX) == getpid();
    const char *letters = is_upgrade ? getenv(UPGRADE_SOCKETS) : NULL;
    size_t n = is_activated      ? (size_t)num_of_environment("LISTEN_FDS", SOCKETS_MAX)
               : letters != NULL ? strlen(letters)
                                 : 0;
    inherited->predecessor = is_upgrade ? UPGRADE_FD : -1;
    inherited->has_answers =
        is_upgrade && num_of_environment(UPGRADE_OFFERS, INT32_MAX) == getppid();
    if (is_upgrade)
        fcntl(UPGRADE_FD, F_SETFD, FD_CLOEXEC);
    bool is_good = adopt_all(inherited, UPGRADE_FD + is_upgrade, n);
    for (size_t i = 0; i < inherited->n; i++)
        inherited->sockets[i].is_systemds = is_activated || letters[i] == UPGRADE_SYSTEMD;
    long admin_commands = is_upgrade ? num_of_environment(UPGRADE_ADMIN_COMMANDS, SOCKETS_MAX) : 0;
    if (admin_commands == (long)(UPGRADE_FD + 1 + n))
        inherited->admin_commands = succession_read_all((int)admin_commands);
    const char *nodes = is_upgrade ? getenv(UPGRADE_NODES) : NULL;
    inherited->nodes = mem_strdup(nodes);
    forget_environment();
    if (is_good)
        return inherited;
    inherit_free(inherited);
    return NULL;
}

/* ---- which socket is for which address ---- */

static bool is_same_ip(const struct endpoint *a, const struct endpoint *b)
{
    const struct sockaddr_in *a4 = (const void *)&a->address, *b4 = (const void *)&b->address;
    const struct sockaddr_in6 *a6 = (const void *)&a->address, *b6 = (const void *)&b->address;
    if (a->address.ss_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

/* True if the socket is bound to `wanted`. Port 0 is any port. */
static bool succession_is_wanted(const struct endpoint *bound, const struct endpoint *wanted)
{
    if (bound->address.ss_family != wanted->address.ss_family)
        return false;
    if (bound->address.ss_family != AF_UNIX)
        return is_same_ip(bound, wanted) &&
               (endpoint_port(wanted) == 0 || endpoint_port(wanted) == endpoint_port(bound));
    const struct sockaddr_un *a = (const void *)&bound->address,
                             *b = (const void *)&wanted->address;
    return strcmp(a->sun_path, b->sun_path) == 0;
}

int inherit_take(struct inherited *inherited, struct endpoint *at, bool *is_systemds)
{
    for (size_t i = 0; i < inherited->n; i++) {
        struct found *found = &inherited->sockets[i];
        if (found->fd < 0 || !succession_is_wanted(&found->at, at))
            continue;
        int fd = found->fd;
        found->fd = -1;
        *is_systemds = found->is_systemds;
        *at = found->at;
        return fd;
    }
    return -1;
}

bool inherit_check(const struct inherited *inherited)
{
    for (size_t i = 0; i < inherited->n && inherited->predecessor < 0; i++)
        if (inherited->sockets[i].fd >= 0) {
            char text[ENDPOINT_TEXT];
            endpoint_print(&inherited->sockets[i].at, text);
            log_error(
                "systemd listens on %s, which the configuration does not name: set listen= or socket=, or "
                "remove the address from weir.socket",
                text);
            return false;
        }
    return true;
}

void inherit_free(struct inherited *inherited)
{
    if (inherited == NULL)
        return;
    for (size_t i = 0; i < inherited->n; i++)
        if (inherited->sockets[i].fd >= 0)
            close(inherited->sockets[i].fd);
    free(inherited->admin_commands);
    free(inherited->nodes);
    free(inherited->sockets);
    free(inherited);
}

/* ---- the reasons why this process does not serve ---- */

static bool is_heard; /* the predecessor reads the lines; main thread only */
static pthread_t main_thread;

/*
 * A line that does not fit into the socket pair is lost: this process must not wait for the
 * predecessor.
 */
static void tell_reason(enum log_level level, const char *text, bool is_logged)
{
    char line[UPGRADE_LINE_MAX + 2];
    if (level < LOG_WARN || !pthread_equal(pthread_self(), main_thread))
        return; /* another thread may log after the socket pair is closed */
    int printed =
        snprintf(line, sizeof line - 1, "%c%c%s", is_logged ? UPGRADE_LOGGED : UPGRADE_TOLD,
                 level >= LOG_ERROR ? 'e' : 'w', text);
    size_t len = (size_t)printed < sizeof line - 2 ? (size_t)printed : sizeof line - 2;
    for (size_t i = 2; i < len; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[len++] = '\n';
    (void)!send(UPGRADE_FD, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void succession_tell_reasons(void)
{
    if (num_of_environment(UPGRADE_REASONS, INT32_MAX) != getppid())
        return;
    is_heard = true;
    main_thread = pthread_self();
    log_set_witness(tell_reason);
}

bool succession_tells_reasons(void)
{
    return is_heard;
}

/* Ends the reports to the predecessor: this process serves, or is about to. */
static void end_reasons(void)
{
    is_heard = false;
    log_set_witness(NULL);
}

/* ---- offering and serving ---- */

/* The predecessor has sent UPGRADE_GO, or has closed the connection. */
static void succession_on_word(uv_poll_t *poll, int status, int events)
{
    struct succession *succession = poll->data;
    char word;
    ssize_t n = recv(succession->fd, &word, 1, MSG_DONTWAIT);
    bool is_end = status != 0 || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    (void)events;
    if (succession->is_serving && is_end) {
        succession_close(succession);
        succession->on_alone(succession->arg);
    } else if (!succession->is_serving && (is_end || n > 0)) {
        uv_poll_stop(poll);
        succession->may_serve = true;
        succession->on_may_serve(succession->arg);
    }
}

static void listen_to(struct succession *succession, struct loop *loop)
{
    if (!succession->is_waiting)
        uv_poll_init(&loop->uv, &succession->poll, succession->fd);
    succession->poll.data = succession;
    succession->is_waiting = true;
    uv_poll_start(&succession->poll, UV_READABLE | UV_DISCONNECT, succession_on_word);
}

void succession_offer(struct succession *succession, struct loop *loop)
{
    if (succession->is_waiting)
        return;
    if (succession->has_answers)
        (void)!write(succession->fd, &(const char){UPGRADE_OFFER}, 1);
    listen_to(succession, loop);
}

void succession_serve(struct succession *succession, struct loop *loop)
{
    end_reasons();
    if (succession->fd < 0)
        return;
    /*
     * An error means that the predecessor has ended: succession_on_word then gets the end at once.
     */
    (void)!write(succession->fd,
                 &(const char){succession->has_admin_commands ? UPGRADE_HAS_ADMIN_COMMANDS : '\0'},
                 1);
    succession->is_serving = true;
    listen_to(succession, loop);
}

void succession_close(struct succession *succession)
{
    end_reasons();
    if (succession->is_waiting)
        uv_close((uv_handle_t *)&succession->poll, NULL);
    succession->is_waiting = false;
    if (succession->fd >= 0)
        close(succession->fd);
    succession->fd = -1;
}
