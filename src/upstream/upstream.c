#include "upstream/upstream.h"

void upstream_init(struct upstream *upstream)
{
    pthread_mutex_init(&upstream->tls_lock, NULL);
    pthread_mutex_init(&upstream->sheds_lock, NULL);
    list_init(&upstream->sheds);
}

void upstream_fini(struct upstream *upstream)
{
    tls_context_put(upstream->tls);
    pthread_mutex_destroy(&upstream->tls_lock);
    pthread_mutex_destroy(&upstream->sheds_lock);
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

/* The lock keeps a handle open while the handle is woken. */
void upstream_shed(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    for (struct list *at = upstream->sheds.next; at != &upstream->sheds; at = at->next)
        uv_async_send(&container_of(at, struct shed, in_upstream)->async);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_enter_shed(struct upstream *upstream, struct shed *shed)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    list_push(&upstream->sheds, &shed->in_upstream);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_leave_shed(struct upstream *upstream, struct shed *shed)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    list_take(&shed->in_upstream);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_ask(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    if (upstream->asked != NULL)
        uv_async_send(upstream->asked);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_ask_topology(struct upstream *upstream)
{
    if (upstream->is_cluster &&
        !atomic_load_explicit(&upstream->is_topology_asked, memory_order_relaxed) &&
        !atomic_exchange_explicit(&upstream->is_topology_asked, true, memory_order_acq_rel))
        upstream_ask(upstream);
}

void upstream_set_asked(struct upstream *upstream, uv_async_t *asked)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    upstream->asked = asked;
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_note_refusal(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    if (upstream->on_refusal != NULL)
        uv_async_send(upstream->on_refusal);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_set_on_refusal(struct upstream *upstream, uv_async_t *async)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    upstream->on_refusal = async;
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_poll(struct upstream *upstream)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    if (upstream->poll != NULL)
        uv_async_send(upstream->poll);
    pthread_mutex_unlock(&upstream->sheds_lock);
}

void upstream_set_poll(struct upstream *upstream, uv_async_t *poll)
{
    pthread_mutex_lock(&upstream->sheds_lock);
    upstream->poll = poll;
    pthread_mutex_unlock(&upstream->sheds_lock);
}
