#include "upstream/lane/outbox.h"

void outbox_flush(struct outbox *outbox)
{
    struct link *link = outbox->link;
    outbox->link = NULL;
    if (link != NULL && !link_is_closed(link))
        link_write(link, outbox->at, outbox->len);
}

void outbox_send(struct outbox *outbox, struct link *link, const char *data, size_t n)
{
    outbox_flush(outbox);
    link_write(link, data, n);
}

void outbox_gather(struct outbox *outbox, struct link *link, const char *data, size_t n)
{
    if (outbox->link == link && outbox->at + outbox->len == data) {
        outbox->len += n;
        return;
    }
    outbox_flush(outbox);
    *outbox = (struct outbox){link, data, n};
}
