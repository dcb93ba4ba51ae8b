#include "run/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static const char *resolve_unix(const struct address *address, struct endpoint *out)
{
    struct sockaddr_un *un = (void *)&out->address;
    size_t len = strlen(address->host);
    if (len >= sizeof un->sun_path)
        return "the path of the socket is too long";
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, address->host, len + 1);
    out->length = sizeof *un;
    return NULL;
}

const char *endpoint_resolve(const struct address *address, struct endpoint *out)
{
    memset(out, 0, sizeof *out);
    if (address->is_unix)
        return resolve_unix(address, out);
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(address->host, port, &hints, &found);
    if (error != 0)
        return gai_strerror(error);
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

uint16_t endpoint_port(const struct endpoint *endpoint)
{
    const struct sockaddr_in *v4 = (const void *)&endpoint->address;
    const struct sockaddr_in6 *v6 = (const void *)&endpoint->address;
    return ntohs(endpoint->address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT])
{
    const struct sockaddr_un *un = (const void *)&endpoint->address;
    char host[64], port[8];
    bool is_v6 = endpoint->address.ss_family == AF_INET6;
    if (endpoint->address.ss_family == AF_UNIX)
        snprintf(out, ENDPOINT_TEXT, "unix:%s", un->sun_path);
    else if (getnameinfo((const struct sockaddr *)&endpoint->address, endpoint->length, host, sizeof host, port,
                         sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out, ENDPOINT_TEXT, "%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    else
        snprintf(out, ENDPOINT_TEXT, "an unknown address");
}
