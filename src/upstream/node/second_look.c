#include "upstream/node/second_look.h"

#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"
#include "upstream/control_reply.h"
#include "upstream/lane/own_words.h"

#define MAX_WORDS 3

struct second_look {
    struct link link;
    const struct second_look_ops *ops; /* NULL: its owner has gone */
    void *arg;
    struct bytes questions; /* heap; empty once they have been sent */
    struct control_inbox inbox;
    unsigned n_wanted; /* answers still to come */
    bool is_there;     /* one has */
};

static struct second_look *look_of(struct link *link)
{
    return container_of(link, struct second_look, link);
}

/* ---- what it asks ---- */

/* False: out of memory. */
static bool add(struct second_look *look, const struct slice *words, size_t n)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = malloc(room);
    if (request == NULL)
        return false;
    size_t len = emit_array(request, words, n);
    bool is_added = bytes_add(&look->questions, slice_of(request, len), SIZE_MAX);
    explicit_bzero(request, room);
    free(request);
    look->n_wanted++;
    return is_added;
}

static bool add_login(struct second_look *look, const char *user, const char *password)
{
    struct slice words[MAX_WORDS] = {SLICE(OWN_AUTH)};
    size_t n = 1;
    if (password == NULL)
        return true;
    if (user != NULL)
        words[n++] = slice_str(user);
    words[n++] = slice_str(password);
    return add(look, words, n);
}

static bool prepare(struct second_look *look, const char *user, const char *password)
{
    const struct slice too_few = SLICE(OWN_ECHO), ping = SLICE(OWN_PING);
    return add(look, &too_few, 1) && add_login(look, user, password) && add(look, &ping, 1);
}

static void forget_questions(struct second_look *look)
{
    if (look->questions.len > 0)
        explicit_bzero(look->questions.at, look->questions.len);
    bytes_fini(&look->questions);
}

/* ---- what it hears ---- */

static void on_connected(struct link *link, int status)
{
    struct second_look *look = look_of(link);
    if (status != 0) {
        link_close(link);
        return;
    }
    struct slice questions = bytes_slice(&look->questions);
    link_write(link, questions.at, questions.len);
    forget_questions(look);
}

static void take_frame(struct second_look *look, struct slice frame)
{
    look->n_wanted--;
    if (!look->is_there)
        look->ops->on_there(look->arg);
    look->is_there = true;
    if (look->n_wanted > 0)
        return;
    if (slice_eq(frame, SLICE("+PONG\r\n")))
        look->ops->on_running(look->arg);
    link_close(&look->link);
}

static void on_data(struct link *link, const char *data, size_t n)
{
    struct second_look *look = look_of(link);
    while (n > 0 && !link_is_closed(link)) {
        size_t used;
        struct slice frame;
        enum scan_result result = control_inbox_take(&look->inbox, data, n, &used, &frame);
        if (result == SCAN_BAD) {
            link_close(link);
            return;
        }
        data += used;
        n -= used;
        if (result == SCAN_FRAME)
            take_frame(look, frame);
    }
}

static void on_end(struct link *link, int status)
{
    (void)status;
    link_close(link);
}

static void on_closed(struct link *link)
{
    struct second_look *look = look_of(link);
    if (look->ops != NULL)
        look->ops->on_over(look->arg);
    forget_questions(look);
    control_inbox_fini(&look->inbox);
    free(look);
}

static const struct link_ops link_ops = {
    .on_connected = on_connected,
    .on_data = on_data,
    .on_end = on_end,
    .on_closed = on_closed,
};

struct second_look *second_look_open(struct loop *loop, struct node *node, const char *user, const char *password,
                                     const struct second_look_ops *ops, void *arg)
{
    struct second_look *look = calloc(1, sizeof *look);
    if (look == NULL)
        return NULL;
    look->ops = ops;
    look->arg = arg;
    if (prepare(look, user, password) && node_connect(node, &look->link, loop, &link_ops) == 0)
        return look;
    forget_questions(look);
    free(look);
    return NULL;
}

void second_look_close(struct second_look *look)
{
    if (look == NULL)
        return;
    look->ops = NULL;
    link_close(&look->link);
}
