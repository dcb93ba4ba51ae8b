/*
 * What is handed out to every worker, and may be replaced while it runs. Each part is immutable and counted.
 */
#ifndef WEIR_FRONT_TABLES_H
#define WEIR_FRONT_TABLES_H

#include "front/rules.h"
#include "limit/command/command.h"
#include "upstream/node/topology.h"

struct tables {
    struct command_table *commands;
    struct rules *rules; /* their policies are bound to `commands`; NULL: there are no tables here */
    struct topology *topology;
    unsigned generation; /* counts what has been handed out */
};

/* With one more reference of each part. */
struct tables tables_get(const struct tables *tables);
void tables_put(const struct tables *tables);

#endif
