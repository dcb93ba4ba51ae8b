#include "run/reporter.h"

#include <errno.h>
#include <string.h>

#include "admin/http.h"
#include "base/log.h"
#include "net/listen.h"
#include "run/endpoint.h"

static const char *why_not(int error)
{
    if (error == EADDRINUSE)
        return "it is in use: set listen= in [admin] or stop the other server";
    if (error == EACCES)
        return "permission denied: choose a port above 1023";
    return strerror(error);
}

bool reporter_open(const struct config *config, struct http **http)
{
    struct address shown = config->admin_listen;
    struct endpoint at;
    char text[ADDRESS_TEXT];
    *http = NULL;
    if (shown.host == NULL)
        return true;
    address_print(&shown, text, sizeof text);
    const char *why = endpoint_resolve(&shown, &at);
    int fd = why ? -1 : listen_open(&at);
    if (fd < 0) {
        log_error("cannot listen on %s: %s", text, why ? why : why_not(-fd));
        return false;
    }
    shown.port = endpoint_port(&at);
    address_print(&shown, text, sizeof text);
    *http = http_start(fd);
    if (*http)
        log_info("metrics and health: http://%s/metrics", text);
    else
        log_error("cannot serve metrics on %s: out of threads or memory", text);
    return *http != NULL;
}

void reporter_tell(struct http *http, const struct census *census)
{
    if (http)
        http_publish(http, census_take(census));
}
