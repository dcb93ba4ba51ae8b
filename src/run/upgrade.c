#include "run/upgrade.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "run/commands/config_manager.h"
#include "run/commands/handover.h"
#include "run/listening.h"
#include "run/reporter.h"
#include "run/sd_notify.h"

/* descriptors 0 to 2 are inherited; the socket pair follows, then the listening sockets */
#define STANDARD_FDS UPGRADE_FD

/* ---- the successor's environment and descriptors ---- */

/* True for a variable that the successor does not get, or gets with a new value. */
static bool is_ours(const char *variable)
{
    static const char *const names[] = {
        "WATCHDOG_PID=",    UPGRADE_PID "=",   UPGRADE_SOCKETS "=", UPGRADE_ADMIN_COMMANDS "=",
        UPGRADE_OFFERS "=", UPGRADE_NODES "=", UPGRADE_REASONS "="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/*
 * Returns the environment with n more variables. The strings remain the environment's and the
 * caller's; the caller frees the array. NULL: out of memory.
 */
static char **environment_with(char *const *more, size_t n_more)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL)
        n++;
    char **all = calloc(n + n_more + 1, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_ours(environ[i]))
            all[kept++] = environ[i];
    memcpy(all + kept, more, n_more * sizeof *more);
    return all;
}

/* Returns the variable with the known nodes; the caller frees. NULL: out of memory. */
static char *known_nodes(const char *nodes)
{
    static const char name[] = UPGRADE_NODES "=";
    char *text = malloc(sizeof name + strlen(nodes));
    if (text != NULL)
        memcpy(stpcpy(text, name), nodes, strlen(nodes) + 1);
    return text;
}

/* Returns the variable with a letter for each socket; the caller frees. NULL: out of memory. */
static char *letters(const struct heirloom *sockets, size_t n)
{
    static const char name[] = UPGRADE_SOCKETS "=";
    char *text = calloc(sizeof name + n, 1);
    if (text == NULL)
        return NULL;
    memcpy(text, name, sizeof name);
    for (size_t i = 0; i < n; i++)
        text[sizeof name - 1 + i] = sockets[i].is_systemds ? UPGRADE_SYSTEMD : UPGRADE_OWN;
    return text;
}

/* Returns the successor's descriptors; the caller frees. NULL: out of memory. */
static uv_stdio_container_t *descriptors(struct upgrade *upgrade, const struct heirloom *sockets,
                                         size_t n, int admin_commands)
{
    uv_stdio_container_t *all = calloc(STANDARD_FDS + 1 + n + 1, sizeof *all);
    if (all == NULL)
        return NULL;
    for (int fd = 0; fd < STANDARD_FDS; fd++)
        all[fd] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = fd};
    all[STANDARD_FDS].flags =
        (uv_stdio_flags)(UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE);
    all[STANDARD_FDS].data.stream = (uv_stream_t *)&upgrade->answer;
    for (size_t i = 0; i < n; i++)
        all[STANDARD_FDS + 1 + i] =
            (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = sockets[i].fd};
    if (admin_commands >= 0)
        all[STANDARD_FDS + 1 + n] =
            (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = admin_commands};
    return all;
}

/*
 * Returns a file in memory with the text, which the caller closes; -1: the system cannot make one.
 */
static int file_of(const char *text)
{
    size_t len = strlen(text), done = 0;
    int fd = memfd_create("weir orders", MFD_CLOEXEC);
    ssize_t n = 0;
    while (fd >= 0 && done < len && (n = write(fd, text + done, len - done)) > 0)
        done += (size_t)n;
    if (fd >= 0 && (done < len || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- the successor's progress ---- */

static void upgrade_on_closed(uv_handle_t *handle)
{
    struct upgrade *upgrade = handle->data;
    upgrade->open--;
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, upgrade_on_closed);
}

static void close_both(struct upgrade *upgrade)
{
    close_handle((uv_handle_t *)&upgrade->answer);
    close_handle((uv_handle_t *)&upgrade->process);
}

/*
 * Takes a full line of the successor. A line that the successor has logged itself is only
 * remembered.
 */
static void upgrade_take_line(struct upgrade *upgrade)
{
    const char *text = upgrade->line + 1;
    enum log_level level = upgrade->line[0] == 'e' ? LOG_ERROR : LOG_WARN;
    upgrade->line[upgrade->len] = '\0';
    if (upgrade->len == 0)
        return;
    if (upgrade->mark != UPGRADE_LOGGED)
        log_line(level, "upgrade: process %d: %s", upgrade->process.pid, text);
    if (level == LOG_ERROR && upgrade->reason[0] == '\0')
        snprintf(upgrade->reason, sizeof upgrade->reason, "%s", text);
}

/* Takes a byte from the successor. False: the byte belongs to no line, so the successor serves. */
static bool upgrade_take(struct upgrade *upgrade, char byte)
{
    if (byte == UPGRADE_OFFER && upgrade->mark == 0) {
        upgrade->has_offer = true;
    } else if (byte == UPGRADE_TOLD || byte == UPGRADE_LOGGED) {
        upgrade->mark = byte;
        upgrade->len = 0;
    } else if (upgrade->mark == 0) {
        return false;
    } else if (byte != '\n') {
        if (upgrade->len < sizeof upgrade->line - 1)
            upgrade->line[upgrade->len++] = byte;
    } else {
        upgrade_take_line(upgrade);
        upgrade->mark = 0;
    }
    return true;
}

/* Reads the bytes that the successor wrote before it ended. */
static void read_rest(struct upgrade *upgrade)
{
    uv_os_fd_t fd;
    ssize_t n;
    bool is_line = true;
    if (uv_is_closing((uv_handle_t *)&upgrade->answer) ||
        uv_fileno((uv_handle_t *)&upgrade->answer, &fd) != 0)
        return;
    while (is_line && (n = recv(fd, upgrade->room, sizeof upgrade->room, MSG_DONTWAIT)) > 0)
        for (ssize_t i = 0; is_line && i < n; i++)
            is_line = upgrade_take(upgrade, upgrade->room[i]);
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct upgrade *upgrade = process->data;
    if (upgrade->state == UPGRADE_RUNS) {
        read_rest(upgrade);
        log_error("upgrade: process %d ended (status %" PRId64
                  ", signal %d) before it served: process %d goes on%s%s",
                  process->pid, status, number, getpid(), upgrade->reason[0] != '\0' ? ": " : "",
                  upgrade->reason);
    } else if (upgrade->state == UPGRADE_DONE) {
        log_warn("upgrade: process %d, which had taken over, ended", process->pid);
    }
    upgrade->state = UPGRADE_NONE;
    close_both(upgrade);
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct upgrade *upgrade = handle->data;
    (void)size;
    *buf = uv_buf_init(upgrade->room, sizeof upgrade->room);
}

/*
 * Logs the admin commands that were given or taken back while the successor started. Logs all admin
 * commands in force if the successor takes none over.
 */
static void tell_lost_admin_commands(const struct upgrade *upgrade)
{
    const char *taken = upgrade->has_admin_commands ? upgrade->admin_commands : NULL;
    char *admin_commands = config_manager_hand_over(upgrade->manager);
    if (admin_commands == NULL)
        return;
    handover_log(admin_commands, taken, "dropped",
                 taken != NULL
                     ? "an operator gave it while the new process started: give it again"
                     : "the new process does not take over operators' settings: give it again",
                 upgrade->journal);
    if (taken != NULL)
        handover_log(taken, admin_commands, "holds on",
                     "an operator removed it while the new process started: remove it again",
                     upgrade->journal);
    free(admin_commands);
}

static void hand_over(struct upgrade *upgrade)
{
    int pid = upgrade->process.pid;
    log_info("upgrade: process %d has taken over from process %d, which stops", pid, getpid());
    tell_lost_admin_commands(upgrade);
    sd_notify_send("MAINPID=%d", pid);
    sd_notify_hold(true);
    listening_hand_over(upgrade->listening);
    reporter_quiesce(upgrade->reporter);
    /* from now on the successor notifies the service manager */
    close_handle((uv_handle_t *)&upgrade->answer);
    upgrade->on_replaced(upgrade->arg);
}

static void upgrade_on_answer(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct upgrade *upgrade = stream->data;
    (void)buf;
    if (n < 0 || upgrade->state != UPGRADE_RUNS) {
        uv_read_stop(stream);
        return; /* on_exit_of follows */
    }
    for (ssize_t i = 0; i < n; i++) {
        if (upgrade_take(upgrade, upgrade->room[i]))
            continue;
        uv_read_stop(stream);
        upgrade->state = UPGRADE_DONE;
        upgrade->has_admin_commands =
            upgrade->admin_commands != NULL && upgrade->room[i] == UPGRADE_HAS_ADMIN_COMMANDS;
        hand_over(upgrade);
        return;
    }
}

/* ---- the life of the successor ---- */

static void spawn(struct upgrade *upgrade, struct loop *loop, const uv_process_options_t *options)
{
    uv_pipe_init(&loop->uv, &upgrade->answer, 0);
    int error = uv_spawn(&loop->uv, &upgrade->process, options);
    upgrade->process.data = upgrade->answer.data = upgrade;
    upgrade->open = 2;
    if (error != 0) {
        log_error("upgrade: cannot start %s: %s", upgrade->program->path, uv_strerror(error));
        close_both(upgrade);
        return;
    }
    upgrade->state = UPGRADE_RUNS;
    log_info("upgrade: process %d is starting, to take over from %d", upgrade->process.pid,
             getpid());
    uv_read_start((uv_stream_t *)&upgrade->answer, on_room, upgrade_on_answer);
}

/* Returns the listening sockets; the caller frees. NULL: out of memory. */
static struct heirloom *list_sockets(const struct upgrade *upgrade, size_t *n)
{
    for (*n = 0; listening_socket(upgrade->listening, *n).fd >= 0; ++*n)
        ;
    struct heirloom *sockets = calloc(*n + 1, sizeof *sockets);
    for (size_t i = 0; sockets != NULL && i < *n; i++)
        sockets[i] = listening_socket(upgrade->listening, i);
    if (sockets != NULL && upgrade->reporter->fd >= 0)
        sockets[(*n)++] = (struct heirloom){.fd = upgrade->reporter->fd};
    return sockets;
}

static void start(struct upgrade *upgrade, struct loop *loop, const struct heirloom *sockets,
                  size_t n, const char *nodes)
{
    char *admin_commands = config_manager_hand_over(upgrade->manager);
    char pid[64], reasons[64], offers[64], which[64] = UPGRADE_ADMIN_COMMANDS "=";
    int file = admin_commands != NULL ? file_of(admin_commands) : -1;
    free(upgrade->admin_commands);
    upgrade->admin_commands = file >= 0 ? admin_commands : NULL;
    if (file < 0)
        free(admin_commands);
    else
        snprintf(which, sizeof which, UPGRADE_ADMIN_COMMANDS "=%zu", STANDARD_FDS + 1 + n);
    char *kinds = letters(sockets, n), *known = known_nodes(nodes);
    snprintf(pid, sizeof pid, UPGRADE_PID "=%d", getpid());
    snprintf(reasons, sizeof reasons, UPGRADE_REASONS "=%d", getpid());
    snprintf(offers, sizeof offers, UPGRADE_OFFERS "=%d", getpid());
    char *const more[] = {pid, which, reasons, offers, known, kinds};
    uv_process_options_t options = {
        .exit_cb = on_exit_of,
        .file = upgrade->program->path,
        .args = upgrade->program->argv,
        .env = kinds != NULL && known != NULL ? environment_with(more, sizeof more / sizeof more[0])
                                              : NULL,
        .stdio_count = (int)(STANDARD_FDS + 1 + n + (file >= 0)),
        .stdio = descriptors(upgrade, sockets, n, file),
    };
    upgrade->mark = 0;
    upgrade->reason[0] = '\0';
    upgrade->has_offer = false;
    if (options.env != NULL && options.stdio != NULL)
        spawn(upgrade, loop, &options);
    else
        log_error("upgrade: cannot start %s: out of memory", upgrade->program->path);
    free(options.env);
    free(kinds);
    free(known);
    free(options.stdio);
    if (file >= 0)
        close(file);
}

void upgrade_start(struct upgrade *upgrade, struct loop *loop, const char *nodes)
{
    size_t n;
    if (upgrade->open > 0) {
        log_warn("upgrade: an upgrade is already under way");
        return;
    }
    struct heirloom *sockets = list_sockets(upgrade, &n);
    if (sockets != NULL)
        start(upgrade, loop, sockets, n, nodes);
    else
        log_error("upgrade: cannot start %s: out of memory", upgrade->program->path);
    free(sockets);
}

/* The write cannot block: the socket pair has room for one byte. */
void upgrade_let_serve(struct upgrade *upgrade)
{
    uv_buf_t go = uv_buf_init(&(char){UPGRADE_GO}, 1);
    if (upgrade->state != UPGRADE_RUNS || !upgrade->has_offer)
        return;
    upgrade->has_offer = false;
    log_info("upgrade: process %d may take over, because process %d is not ready either",
             upgrade->process.pid, getpid());
    (void)uv_try_write((uv_stream_t *)&upgrade->answer, &go, 1);
}

void upgrade_call_off(struct upgrade *upgrade)
{
    if (upgrade->state != UPGRADE_RUNS)
        return;
    log_info("upgrade: process %d is stopped, because this process stops", upgrade->process.pid);
    upgrade->state = UPGRADE_CALLED_OFF;
    uv_process_kill(&upgrade->process, SIGTERM);
}

void upgrade_close(struct upgrade *upgrade)
{
    upgrade_call_off(upgrade);
    if (upgrade->open > 0)
        close_both(upgrade);
}

void upgrade_fini(struct upgrade *upgrade)
{
    free(upgrade->admin_commands);
}
