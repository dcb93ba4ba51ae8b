#include "run/succession.h"

#include <unistd.h>

/* Nothing is ever sent here: this is the end. */
static void on_end(uv_poll_t *poll, int status, int events)
{
    struct succession *succession = poll->data;
    (void)status;
    (void)events;
    succession_close(succession);
    succession->on_alone(succession->arg);
}

void succession_serve(struct succession *succession, struct loop *loop)
{
    if (succession->fd < 0)
        return;
    (void)!write(succession->fd, "", 1); /* the predecessor may have gone: then the end comes at once */
    uv_poll_init(&loop->uv, &succession->poll, succession->fd);
    succession->poll.data = succession;
    succession->is_waiting = true;
    uv_poll_start(&succession->poll, UV_READABLE | UV_DISCONNECT, on_end);
}

void succession_close(struct succession *succession)
{
    if (succession->is_waiting)
        uv_close((uv_handle_t *)&succession->poll, NULL);
    succession->is_waiting = false;
    if (succession->fd >= 0)
        close(succession->fd);
    succession->fd = -1;
}
