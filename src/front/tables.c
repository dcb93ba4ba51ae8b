#include "front/tables.h"

struct tables tables_get(const struct tables *tables)
{
    command_table_get(tables->commands);
    rules_get(tables->rules);
    topology_get(tables->topology);
    return *tables;
}

void tables_put(const struct tables *tables)
{
    if (tables->rules == NULL)
        return;
    command_table_put(tables->commands);
    rules_put(tables->rules);
    topology_put(tables->topology);
}
