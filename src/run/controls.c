#include "run/controls.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "upstream/auth_probe.h"

struct control_row {
    struct controls *controls;
    struct node *node;
    struct control *control;
    struct auth_probe *probe; /* NULL: not yet */
    bool is_settled;
};

struct controls {
    struct loop *loop;
    struct upstream *upstream;
    const struct controls_ops *ops;
    void *arg;
    size_t n_rows; /* in the order of the topology's */
    struct control_row rows[];
};

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
    log_error("upstream %s cannot be served: %s", row->node->text, why);
}

/* As long as it is not known where lanes will lead, there may be no more than the node takes that takes fewest. */
static void on_maxclients(void *arg)
{
    const struct controls *controls = ((const struct control_row *)arg)->controls;
    uint32_t least = 0;
    for (size_t i = 0; i < controls->n_rows; i++) {
        uint32_t own = atomic_load_explicit(&controls->rows[i].node->maxclients, memory_order_relaxed);
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

static void on_pulse(void *arg, enum log_level level, const char *line)
{
    const struct control_row *row = arg;
    row->controls->ops->on_pulse(row->controls->arg, level, line);
}

static const struct control_ops control_ops = {
    .on_table = on_table,
    .on_rejected = on_rejected,
    .on_maxclients = on_maxclients,
    .on_settled = on_settled,
    .on_pulse = on_pulse,
};

struct controls *controls_open(struct loop *loop, const struct topology *topology,
                               const struct credentials *credentials, const struct controls_ops *ops, void *arg)
{
    struct controls *controls = mem_zalloc(1, sizeof *controls + topology->n_rows * sizeof controls->rows[0]);
    controls->loop = loop;
    controls->upstream = topology_home(topology)->upstream;
    controls->ops = ops;
    controls->arg = arg;
    controls->n_rows = topology->n_rows;
    for (size_t i = 0; i < controls->n_rows; i++)
        controls->rows[i] = (struct control_row){.controls = controls, .node = topology->rows[i].node};
    for (size_t i = 0; i < controls->n_rows; i++) {
        struct control_row *row = &controls->rows[i];
        row->control = control_open(loop, row->node, credentials, &control_ops, row);
    }
    return controls;
}

void controls_probe(struct controls *controls)
{
    for (size_t i = 0; i < controls->n_rows; i++)
        controls->rows[i].probe = auth_probe_open(controls->loop, controls->rows[i].node);
}

void controls_set_password(struct controls *controls, const char *password)
{
    for (size_t i = 0; i < controls->n_rows; i++)
        control_set_password(controls->rows[i].control, password);
}

bool controls_is_up(const struct controls *controls, size_t row)
{
    return control_is_up(controls->rows[row].control);
}

const char *controls_why(const struct controls *controls, size_t row)
{
    return control_why(controls->rows[row].control);
}

bool controls_is_turned_away(const struct controls *controls, size_t row)
{
    return control_is_turned_away(controls->rows[row].control);
}

enum pulse_state controls_pulse(const struct controls *controls, size_t row)
{
    return control_pulse(controls->rows[row].control);
}

uint64_t controls_silence_ns(const struct controls *controls, size_t row, uint64_t now_ns)
{
    return control_silence_ns(controls->rows[row].control, now_ns);
}

/* What is closed asynchronously owns itself, and says nothing more. */
void controls_close(struct controls *controls)
{
    for (size_t i = 0; i < controls->n_rows; i++) {
        control_close(controls->rows[i].control);
        auth_probe_close(controls->rows[i].probe);
    }
    free(controls);
}
