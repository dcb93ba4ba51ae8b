#include "upstream/upstream.h"

void upstream_init(struct upstream *upstream)
{
    pthread_mutex_init(&upstream->tls_lock, NULL);
    pthread_mutex_init(&upstream->shed_lock, NULL);
}

void upstream_fini(struct upstream *upstream)
{
    tls_context_put(upstream->tls);
    pthread_mutex_destroy(&upstream->tls_lock);
    pthread_mutex_destroy(&upstream->shed_lock);
}

void upstream_set_tls(struct upstream *upstream, struct tls_context *tls)
{
    pthread_mutex_lock(&upstream->tls_lock);
    struct tls_context *before = upstream->tls;
    upstream->tls = tls_context_get(tls);
    pthread_mutex_unlock(&upstream->tls_lock);
    tls_context_put(before);
}

struct tls_context *upstream_tls(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->tls_lock);
    struct tls_context *tls = tls_context_get(upstream->tls);
    pthread_mutex_unlock(&upstream->tls_lock);
    return tls;
}

/* A handle that is being closed must not be sent to: hence the lock. */
void upstream_shed(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->shed_lock);
    for (unsigned i = 0; i < UPSTREAM_WORKERS_MAX; i++)
        if (upstream->shed[i] != NULL)
            uv_async_send(upstream->shed[i]);
    pthread_mutex_unlock(&upstream->shed_lock);
}

static void replace(struct upstream *upstream, const uv_async_t *old, uv_async_t *new)
{
    unsigned i = 0;
    pthread_mutex_lock(&upstream->shed_lock);
    while (i < UPSTREAM_WORKERS_MAX && upstream->shed[i] != old)
        i++;
    if (i < UPSTREAM_WORKERS_MAX)
        upstream->shed[i] = new;
    pthread_mutex_unlock(&upstream->shed_lock);
}

void upstream_enter_shed(struct upstream *upstream, uv_async_t *shed)
{
    replace(upstream, NULL, shed);
}

void upstream_leave_shed(struct upstream *upstream, uv_async_t *shed)
{
    replace(upstream, shed, NULL);
}
