#include "upstream/upstream.h"

void upstream_init(struct upstream *upstream)
{
    pthread_mutex_init(&upstream->tls_lock, NULL);
    upstream->owned = owned_new();
}

void upstream_fini(struct upstream *upstream)
{
    tls_context_put(upstream->tls);
    owned_free(upstream->owned);
    pthread_mutex_destroy(&upstream->tls_lock);
}

void upstream_set_tls(struct upstream *upstream, struct tls_context *tls)
{
    pthread_mutex_lock(&upstream->tls_lock);
    struct tls_context *before = upstream->tls;
    upstream->tls = tls_context_get(tls);
    pthread_mutex_unlock(&upstream->tls_lock);
    tls_context_put(before);
}

int upstream_connect(struct upstream *upstream, struct link *link, struct loop *loop, const struct link_ops *ops)
{
    pthread_mutex_lock(&upstream->tls_lock);
    struct tls_context *tls = tls_context_get(upstream->tls);
    pthread_mutex_unlock(&upstream->tls_lock);
    int status = link_connect(link, loop, RANK_LANE, &upstream->endpoint, tls, ops);
    tls_context_put(tls);
    return status;
}
