#include "run/reporter.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "admin/http.h"
#include "base/log.h"
#include "net/listen.h"

static const char *reporter_why_not(int error)
{
    if (error == EADDRINUSE)
        return "the address is in use: set listen= in [admin] or stop the other server";
    if (error == EACCES)
        return "permission denied: choose a port above 1023";
    return strerror(error);
}

bool reporter_open(struct reporter *reporter, const struct config *config,
                   struct inherited *inherited)
{
    struct address shown = config->admin_listen;
    struct endpoint at;
    bool is_systemds;
    *reporter = (struct reporter){.fd = -1};
    if (shown.host == NULL)
        return true;
    address_print(&shown, reporter->text, sizeof reporter->text);
    const char *why = address_resolve(&shown, &at);
    int fd = why != NULL ? -1 : inherit_take(inherited, &at, &is_systemds);
    if (why == NULL && fd < 0)
        fd = listen_open(&at, NULL);
    if (fd < 0) {
        log_error("cannot listen on %s: %s", reporter->text,
                  why != NULL ? why : reporter_why_not(-fd));
        return false;
    }
    shown.port = endpoint_port(&at);
    address_print(&shown, reporter->text, sizeof reporter->text);
    reporter->fd = fd;
    reporter->hosts = config->admin_hosts;
    return true;
}

bool reporter_start(struct reporter *reporter)
{
    if (reporter->fd < 0)
        return true;
    reporter->http = http_start(reporter->fd, reporter->hosts);
    if (reporter->http != NULL) {
        log_info("page at http://%s/", reporter->text);
        log_info("metrics and health: http://%s/metrics", reporter->text);
        return true;
    }
    reporter->fd = -1;
    log_error("cannot serve metrics on %s: out of threads or memory", reporter->text);
    return false;
}

void reporter_quiesce(struct reporter *reporter)
{
    if (reporter->http != NULL)
        http_quiesce(reporter->http);
}

void reporter_tell(struct reporter *reporter, const struct stats_collector *collector)
{
    struct snapshot *snapshot = reporter->http != NULL ? collector_take(collector) : NULL;
    if (snapshot != NULL) /* if memory is short the last snapshot stays a second longer */
        http_publish(reporter->http, snapshot);
}

void reporter_close(struct reporter *reporter)
{
    if (reporter->http != NULL)
        http_stop(reporter->http);
    else if (reporter->fd >= 0)
        close(reporter->fd);
    *reporter = (struct reporter){.fd = -1};
}
