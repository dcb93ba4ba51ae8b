#include "run/controls.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

struct control_row {
    struct controls *controls;
    struct finder *finder;
    bool is_settled;
};

struct controls {
    uv_async_t asked; /* node_ask of some node */
    struct upstream *upstream;
    const struct controls_ops *ops;
    void *arg;
    size_t n_rows; /* in the order of the topology's */
    struct control_row rows[];
};

static void on_node(void *arg)
{
    const struct control_row *row = arg;
    row->controls->ops->on_topology(row->controls->arg);
}

static void on_table(void *arg, struct command_table *table)
{
    const struct control_row *row = arg;
    if (row == row->controls->rows)
        row->controls->ops->on_table(row->controls->arg, table);
    else
        command_table_put(table);
}

static void on_rejected(void *arg, const char *why)
{
    const struct control_row *row = arg;
    log_error("upstream %s cannot be served: %s", finder_node(row->finder)->text, why);
}

/* As long as it is not known where lanes will lead, there may be no more than the node takes that takes fewest. */
static void on_maxclients(void *arg)
{
    const struct controls *controls = ((const struct control_row *)arg)->controls;
    uint32_t least = 0;
    for (size_t i = 0; i < controls->n_rows; i++) {
        uint32_t own = atomic_load_explicit(&finder_node(controls->rows[i].finder)->maxclients, memory_order_relaxed);
        least = least == 0 || (own != 0 && own < least) ? own : least;
    }
    atomic_store_explicit(&controls->upstream->room.maxclients, least, memory_order_relaxed);
}

static void on_settled(void *arg)
{
    struct control_row *row = arg;
    struct controls *controls = row->controls;
    row->is_settled = true;
    for (size_t i = 0; i < controls->n_rows; i++)
        if (!controls->rows[i].is_settled)
            return;
    controls->ops->on_settled(controls->arg);
}

static void on_news(void *arg, enum log_level level, const char *about, const char *line)
{
    const struct control_row *row = arg;
    row->controls->ops->on_news(row->controls->arg, level, about, line);
}

static const struct finder_ops finder_ops = {
    .on_node = on_node,
    .on_table = on_table,
    .on_rejected = on_rejected,
    .on_maxclients = on_maxclients,
    .on_settled = on_settled,
    .on_news = on_news,
};

static void on_asked(uv_async_t *async)
{
    const struct controls *controls = async->data;
    for (size_t i = 0; i < controls->n_rows; i++)
        finder_look(controls->rows[i].finder);
}

struct controls *controls_open(struct loop *loop, const struct finder_settings *settings,
                               const struct controls_ops *ops, void *arg)
{
    struct controls *controls = mem_zalloc(1, sizeof *controls + sizeof controls->rows[0]);
    controls->upstream = settings->upstream;
    controls->ops = ops;
    controls->arg = arg;
    controls->n_rows = 1;
    for (size_t i = 0; i < controls->n_rows; i++) {
        struct control_row *row = &controls->rows[i];
        row->controls = controls;
        row->finder = finder_open(loop, settings, &finder_ops, row);
    }
    uv_async_init(&loop->uv, &controls->asked, on_asked);
    controls->asked.data = controls;
    upstream_set_asked(controls->upstream, &controls->asked);
    return controls;
}

void controls_start(struct controls *controls)
{
    for (size_t i = 0; i < controls->n_rows; i++)
        finder_start(controls->rows[i].finder);
}

struct topology *controls_topology(const struct controls *controls)
{
    struct node *nodes[1];
    for (size_t i = 0; i < controls->n_rows; i++)
        nodes[i] = finder_node(controls->rows[i].finder);
    return topology_new(nodes, controls->n_rows);
}

void controls_probe(struct controls *controls)
{
    for (size_t i = 0; i < controls->n_rows; i++)
        finder_probe(controls->rows[i].finder);
}

void controls_set_password(struct controls *controls, const struct credentials *credentials)
{
    for (size_t i = 0; i < controls->n_rows; i++)
        finder_set_password(controls->rows[i].finder, credentials);
}

static const struct control *control_of(const struct controls *controls, size_t row)
{
    return finder_control(controls->rows[row].finder);
}

bool controls_is_up(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL && control_is_up(control);
}

const char *controls_why(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_why(control) : "";
}

bool controls_is_turned_away(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL && control_is_turned_away(control);
}

enum pulse_state controls_pulse(const struct controls *controls, size_t row)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_pulse(control) : PULSE_WELL;
}

uint64_t controls_silence_ns(const struct controls *controls, size_t row, uint64_t now_ns)
{
    const struct control *control = control_of(controls, row);
    return control != NULL ? control_silence_ns(control, now_ns) : 0;
}

const struct finder *controls_finder(const struct controls *controls, size_t row)
{
    return controls->rows[row].finder;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* What is closed asynchronously owns itself, and says nothing more. */
void controls_close(struct controls *controls)
{
    upstream_set_asked(controls->upstream, NULL);
    for (size_t i = 0; i < controls->n_rows; i++)
        finder_close(controls->rows[i].finder);
    uv_close((uv_handle_t *)&controls->asked, on_closed);
}
