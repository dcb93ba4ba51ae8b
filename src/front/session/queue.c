#include "front/session/queue.h"

void queue_begin(struct command_queue *queue)
{
    *queue = (struct command_queue){.slot = KEYS_NO_SLOT};
}

static void free_requests(struct command_queue *queue, struct pool *pool)
{
    pool_note_less(pool, queue->requests.room);
    bytes_fini(&queue->requests);
    queue->requests = (struct bytes){0};
}

/* Without memory a transaction is as one of too many bytes. */
void queue_add(struct command_queue *queue, struct pool *pool, struct slice request, int32_t slot)
{
    size_t before = queue->requests.room;
    if (queue->slot == KEYS_NO_SLOT)
        queue->slot = slot;
    queue->n++;
    queue->is_cut |= request.len == 0;
    if (!queue->is_cut)
        queue->is_cut = !bytes_add(&queue->requests, request, QUEUE_MAX);
    pool_note_more(pool, queue->requests.room - before);
    if (queue->is_cut)
        free_requests(queue, pool);
}

void queue_drop(struct command_queue *queue, struct pool *pool)
{
    free_requests(queue, pool);
    queue->n = 0;
    queue->is_cut = false;
}
