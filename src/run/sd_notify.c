#include "run/sd_notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define MESSAGE_ROOM 1024

static bool is_held; /* main thread only */

/* ---- sending ---- */

/*
 * Makes the address from a path, or from "@name" for an abstract socket. Returns its length; 0:
 * invalid.
 */
static socklen_t sd_notify_find(const char *name, struct sockaddr_un *to)
{
    size_t len = name != NULL ? strlen(name) : 0;
    if (len < 2 || len >= sizeof to->sun_path || (name[0] != '/' && name[0] != '@'))
        return 0;
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, name, len);
    if (name[0] == '@')
        to->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void sd_notify_send(const char *format, ...)
{
    struct sockaddr_un to;
    char message[MESSAGE_ROOM];
    socklen_t to_len = is_held ? 0 : sd_notify_find(getenv("NOTIFY_SOCKET"), &to);
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

void sd_notify_hold(bool is_held_now)
{
    is_held = is_held_now;
}

/* ---- the status ---- */

static void tell_forwarding(const struct stats_collector *collector, char words[SD_NOTIFY_ROOM])
{
    char part[NOT_READY_ROOM];
    const char *text = controls_text(collector->controls);
    collector_tell_part(collector, part);
    snprintf(words, SD_NOTIFY_ROOM, "forwarding to %s%s%s", text, part[0] != '\0' ? ": " : "",
             part);
}

void sd_notify_tell(struct sd_notify *notify, const struct stats_collector *collector)
{
    char why[NOT_READY_ROOM], words[SD_NOTIFY_ROOM];
    bool is_first = collector->pool != NULL && !collector->is_stopping && !notify->has_begun;
    if (collector_is_ready(collector, why))
        tell_forwarding(collector, words);
    else
        snprintf(words, sizeof words, "%s", why);
    notify->has_begun |= is_first;
    if (is_first)
        sd_notify_send("READY=1\nSTATUS=%s", words);
    else if (strcmp(words, notify->last_status) != 0)
        sd_notify_send("%sSTATUS=%s", collector->is_stopping ? "STOPPING=1\n" : "", words);
    memcpy(notify->last_status, words, sizeof words);
}

/* systemd reads the time from version 253 on (Type=notify-reload); older versions ignore it. */
void sd_notify_reloading(const struct sd_notify *notify)
{
    if (notify->has_begun)
        sd_notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns() / NS_PER_US);
}

void sd_notify_reloaded(const struct sd_notify *notify)
{
    if (notify->has_begun)
        sd_notify_send("READY=1");
}

/* ---- the watchdog ---- */

#define US_PER_MS 1000
/*
 * The watchdog's time is divided into this many parts. A worker must answer within one part.
 * sd_watchdog_enabled(3) advises a notification every two parts.
 */
#define PARTS 4

/*
 * Returns the watchdog's time in us; 0: none. Without $WATCHDOG_PID the time is meant for this
 * process.
 */
static int64_t watchdog_us(void)
{
    int64_t pid = num_of_environment("WATCHDOG_PID", INT64_MAX);
    return pid == 0 || pid == getpid() ? num_of_environment("WATCHDOG_USEC", INT64_MAX) : 0;
}

static void sd_notify_on_timer(uv_timer_t *timer)
{
    struct watchdog *watchdog = timer->data;
    if (worker_pool_beats(watchdog->pool))
        sd_notify_send("WATCHDOG=1");
}

void watchdog_start(struct watchdog *watchdog, struct loop *loop, struct worker_pool *pool)
{
    int64_t period_us = watchdog_us();
    if (period_us == 0)
        return;
    uint64_t every_ms = (uint64_t)period_us / (PARTS * US_PER_MS) + 1;
    watchdog->is_wanted = true;
    watchdog->pool = pool;
    watchdog->timer.data = watchdog;
    uv_timer_init(&loop->uv, &watchdog->timer);
    uv_timer_start(&watchdog->timer, sd_notify_on_timer, 0, every_ms);
}

void watchdog_close(struct watchdog *watchdog)
{
    if (watchdog->is_wanted)
        uv_close((uv_handle_t *)&watchdog->timer, NULL);
}
