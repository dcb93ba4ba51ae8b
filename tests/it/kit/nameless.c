/*
 * Hides the peer address of TCP connections from accept4(); preloaded by LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/socket.h>

typedef int accept_fn(int fd, struct sockaddr *peer, socklen_t *len, int flags);

int accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
    accept_fn *real = (accept_fn *)dlsym(RTLD_NEXT, "accept4");
    int client = real(fd, peer, len, flags);
    if (client >= 0 && peer != NULL && peer->sa_family != AF_UNIX) {
        peer->sa_family = AF_UNSPEC;
        *len = 0;
    }
    return client;
}
