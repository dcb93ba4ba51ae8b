#include "front/commands/order.h"

#include <stdlib.h>

struct order *order_new(enum order_kind kind)
{
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL)
        return NULL;
    list_init(&order->in_queue);
    order->kind = kind;
    return order;
}

void order_free(struct order *order)
{
    if (order == NULL)
        return;
    for (size_t i = 0; i < order->n_differences; i++) {
        free(order->differences[i].section);
        free(order->differences[i].what);
        free(order->differences[i].running);
        free(order->differences[i].file);
    }
    build_fini(&order->rows);
    free(order->differences);
    free(order->lines);
    free(order->text);
    free(order->policy);
    free(order->what);
    free(order->expression);
    free(order->key);
    free(order->lives);
    free(order->error);
    free(order);
}
