#include "net/resolver.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/process.h"

#define PORT_TEXT 8

/* State of the look-up thread; may outlive the resolver. */
struct look {
    pthread_mutex_t lock;   /* protects the next two fields */
    unsigned holders;       /* reference count: the thread, and the resolver */
    uv_async_t *async;      /* NULL: the resolver is closed */
    struct resolved result; /* owned by the thread until uv_async_send */
    char host[NI_MAXHOST];
    char port[PORT_TEXT];
};

struct resolver {
    uv_async_t async;
    char *host;
    uint16_t port;
    void (*on_resolved)(void *arg, const struct resolved *resolved);
    void *arg;
    struct look *look; /* one reference; NULL: no look-up in progress */
};

/* Drops a reference. The caller has taken the lock, which this function releases. */
static void put_look(struct look *look)
{
    bool is_last = --look->holders == 0;
    pthread_mutex_unlock(&look->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&look->lock);
    free(look);
}

static bool resolver_is_known(const struct resolved *resolved, const struct addrinfo *found)
{
    for (unsigned i = 0; i < resolved->n; i++)
        if (resolved->endpoints[i].length == found->ai_addrlen &&
            memcmp(&resolved->endpoints[i].address, found->ai_addr, found->ai_addrlen) == 0)
            return true;
    return false;
}

static void resolver_resolve(struct look *look)
{
    struct resolved *result = &look->result;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(look->host, look->port, &hints, &found);
    if (error != 0) {
        result->why = gai_strerror(error);
        return;
    }
    for (const struct addrinfo *at = found; at != NULL && result->n < RESOLVER_MOST;
         at = at->ai_next) {
        if (at->ai_addrlen > sizeof result->endpoints[0].address || resolver_is_known(result, at))
            continue;
        memcpy(&result->endpoints[result->n].address, at->ai_addr, at->ai_addrlen);
        result->endpoints[result->n++].length = at->ai_addrlen;
    }
    freeaddrinfo(found);
    if (result->n == 0)
        result->why = "it has no address";
}

static void *resolver_run(void *arg)
{
    struct look *look = arg;
    pthread_setname_np(pthread_self(), "resolver");
    resolver_resolve(look);
    pthread_mutex_lock(&look->lock);
    if (look->async != NULL)
        uv_async_send(look->async);
    put_look(look);
    return NULL;
}

/* Called on the loop when the thread has a result. */
static void on_async(uv_async_t *async)
{
    struct resolver *resolver = async->data;
    struct look *look = resolver->look;
    if (look == NULL)
        return;
    pthread_mutex_lock(&look->lock);
    struct resolved result = look->result;
    if (result.n == 0 && result.why == NULL) { /* spurious wake-up */
        pthread_mutex_unlock(&look->lock);
        return;
    }
    resolver->look = NULL;
    look->async = NULL;
    put_look(look);
    resolver->on_resolved(resolver->arg, &result);
}

struct resolver *resolver_new(struct loop *loop, const char *host, uint16_t port,
                              void (*on_resolved)(void *arg, const struct resolved *resolved),
                              void *arg)
{
    struct resolver *resolver = mem_zalloc(1, sizeof *resolver);
    resolver->host = mem_strndup(host, strlen(host));
    resolver->port = port;
    resolver->on_resolved = on_resolved;
    resolver->arg = arg;
    uv_async_init(&loop->uv, &resolver->async, on_async);
    resolver->async.data = resolver;
    return resolver;
}

static bool resolver_start(struct look *look)
{
    pthread_t thread;
    sigset_t before;
    signals_block(&before);
    bool is_started = pthread_create(&thread, NULL, resolver_run, look) == 0;
    signals_restore(&before);
    if (is_started)
        pthread_detach(thread);
    return is_started;
}

void resolver_look(struct resolver *resolver)
{
    struct look *look = mem_zalloc(1, sizeof *look);
    pthread_mutex_init(&look->lock, NULL);
    look->holders = 2;
    look->async = &resolver->async;
    snprintf(look->host, sizeof look->host, "%s", resolver->host);
    snprintf(look->port, sizeof look->port, "%u", (unsigned)resolver->port);
    resolver->look = look;
    if (resolver_start(look))
        return;
    look->holders = 1;
    look->result.why = "the system cannot start a thread";
    uv_async_send(&resolver->async);
}

bool resolver_is_looking(const struct resolver *resolver)
{
    return resolver->look != NULL;
}

static void resolver_on_closed(uv_handle_t *handle)
{
    struct resolver *resolver = handle->data;
    free(resolver->host);
    free(resolver);
}

void resolver_close(struct resolver *resolver)
{
    if (resolver == NULL)
        return;
    struct look *look = resolver->look;
    resolver->look = NULL;
    if (look != NULL) {
        pthread_mutex_lock(&look->lock);
        look->async = NULL;
        put_look(look);
    }
    uv_close((uv_handle_t *)&resolver->async, resolver_on_closed);
}
