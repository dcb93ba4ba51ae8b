#include "run/topology/replacement.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "run/commands/handover.h"
#include "run/sd_notify.h"

/* What has been ordered while the new process started, or all of it where that one takes no orders. */
static void tell_lost_orders(const struct replacement *replacement)
{
    const struct upgrade *upgrade = &replacement->upgrade;
    const char *taken = upgrade->has_orders ? upgrade->orders : NULL;
    char *orders = governor_hand_over(replacement->governor);
    if (orders == NULL)
        return;
    handover_log(orders, taken, "dropped",
                 taken != NULL ? "it was given while the new process started: give it again"
                               : "the new process takes no orders over: give it again",
                 replacement->journal);
    if (taken != NULL)
        handover_log(taken, orders, "holds on", "it was taken back while the new process started: take it back again",
                     replacement->journal);
    free(orders);
}

static void on_served(void *arg, int pid)
{
    struct replacement *replacement = arg;
    log_info("upgrade: process %d has taken over from %d, which stops", pid, getpid());
    tell_lost_orders(replacement);
    sd_notify_send("MAINPID=%d", pid);
    sd_notify_hold(true);
    listening_hand_over(replacement->listening);
    reporter_quiesce(replacement->reporter);
    upgrade_let_go(&replacement->upgrade);
    replacement->on_replaced(replacement->arg);
}

void replacement_start(struct replacement *replacement, struct loop *loop, const char *nodes)
{
    struct heirloom *sockets = NULL, one;
    size_t n = 0;
    for (; (one = listening_socket(replacement->listening, n)).fd >= 0; n++) {
        struct heirloom *more = realloc(sockets, (n + 2) * sizeof *sockets);
        if (more == NULL) {
            log_error("upgrade: cannot start %s: out of memory", replacement->program->path);
            free(sockets);
            return;
        }
        sockets = more;
        sockets[n] = one;
    }
    if (replacement->reporter->fd >= 0)
        sockets[n++] = (struct heirloom){.fd = replacement->reporter->fd};
    replacement->upgrade.program = replacement->program;
    replacement->upgrade.on_served = on_served;
    replacement->upgrade.arg = replacement;
    upgrade_start(&replacement->upgrade, loop, sockets, n, governor_hand_over(replacement->governor), nodes);
    free(sockets);
}

void replacement_let_serve(struct replacement *replacement)
{
    upgrade_let_serve(&replacement->upgrade);
}

void replacement_call_off(struct replacement *replacement)
{
    upgrade_call_off(&replacement->upgrade);
}

void replacement_close(struct replacement *replacement)
{
    upgrade_close(&replacement->upgrade);
}

void replacement_fini(struct replacement *replacement)
{
    free(replacement->upgrade.orders);
}
