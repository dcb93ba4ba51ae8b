/* Microbenchmark: finding the row of the command table for a request's first words. */
#include "limit/command/command.h"
#include "micro.h"

static struct command_table *table;

static void prepare(void)
{
    if (!table)
        table = command_table_builtin();
}

static void find(struct slice name, struct slice sub, uint64_t n)
{
    while (n-- > 0) {
        micro_use(&name);
        micro_use(command_find(table, name, sub));
    }
}

static void find_get(uint64_t n)
{
    find(SLICE("GET"), SLICE("get16:0000123"), n);
}

static void find_lower(uint64_t n)
{
    find(SLICE("get"), SLICE("get16:0000123"), n);
}

static void find_long(uint64_t n)
{
    find(SLICE("ZRANGEBYSCORE"), SLICE("key"), n);
}

static void find_sub(uint64_t n)
{
    find(SLICE("CONFIG"), SLICE("GET"), n);
}

static void find_none(uint64_t n)
{
    find(SLICE("NOSUCHCOMMAND"), SLICE("key"), n);
}

const struct micro *micro_command(void)
{
    static const struct micro rows[] = {
        {"command/GET", prepare, find_get},
        {"command/get", prepare, find_lower},
        {"command/ZRANGEBYSCORE", prepare, find_long},
        {"command/CONFIG GET", prepare, find_sub},
        {"command/unknown", prepare, find_none},
        {0},
    };
    return rows;
}
