/*
 * What is set and asked of a link's socket.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "net/link.h"
#include "net/tcp_peer.h"
#include "net/tls.h"

void link_set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value); /* an optional option: failure does not matter */
}

void link_set_options(int fd)
{
    link_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    tcp_peer_keepalive(fd);
}

bool link_has_unread(const struct link *link)
{
    int n = 0;
    return (link_tls(link) != NULL && tls_has_news(link_tls(link))) ||
           (ioctl(link->watch.fd, FIONREAD, &n) == 0 && n > 0);
}

const char *link_why(const struct link *link, int status)
{
    return status == UV_EPROTO && link_tls(link) != NULL && link_tls(link)->why != NULL ? link_tls(link)->why
                                                                                        : uv_strerror(status);
}

struct slice link_tls_name(const struct link *link)
{
    return link_tls(link) != NULL && link_tls(link)->name != NULL ? slice_str(link_tls(link)->name) : slice_of("", 0);
}

bool link_has_vanished(const struct link *link)
{
    return !link->is_unix && !link_is_closed(link) && tcp_peer_has_vanished(link->watch.fd);
}

bool link_is_closed(const struct link *link)
{
    return link->state == LINK_CLOSED;
}
