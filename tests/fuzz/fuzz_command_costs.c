/*
 * Any bytes as the answers of two nodes to INFO commandstats and INFO cpu. Each part up to a NUL is
 * one poll. Every cost stays within its bounds and changes by no more than the allowed factor.
 */
#include "limit/command/command_costs.h"

#include "pieces.h"

#define FIXED_LEAST_NS 500
#define FIXED_MOST_NS 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/*
 * A table with a few commands of each kind. The whole table would take most of the fuzzer's time.
 */
static struct command_table *make_table(void)
{
    static const struct slice scripting = SLICE("scripting");
    static const struct slice names[] = {SLICE("get"), SLICE("keys"), SLICE("multi"), SLICE("exec"),
                                         SLICE("config")};
    struct command_table *table = command_table_new();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        command_table_add(table, &(struct command_info){.name = names[i], .arity = -1});
    command_table_add(table, &(struct command_info){.name = SLICE("eval"),
                                                    .arity = -3,
                                                    .categories = &scripting,
                                                    .n_categories = 1});
    return table;
}

static uint32_t *costs_of(const struct command_table *table)
{
    uint32_t *costs = calloc(command_table_count(table), sizeof *costs);
    REQUIRE(costs != NULL);
    for (size_t id = 0; id < command_table_count(table); id++)
        costs[id] = command_cost_calls(command_table_row(table, id)) > 0
                        ? command_cost_ns(command_table_row(table, id))
                        : 0;
    return costs;
}

/* `before`: the costs before the poll; 0: a default. */
static void check(const struct command_table *table, const uint32_t *before)
{
    for (size_t id = 0; id < command_table_count(table); id++) {
        uint32_t now = command_cost_ns(command_table_row(table, id));
        REQUIRE(now >= COSTS_LEAST_NS && now <= COSTS_MOST_NS);
        REQUIRE(before[id] == 0 || now / 2 <= before[id]);
        REQUIRE(before[id] == 0 || now >= before[id] / 2 || now == COSTS_LEAST_NS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct command_table *table = make_table();
    struct command_costs *costs = command_costs_new(table);
    struct command_counts nodes[2] = {0};
    uint64_t cpu_ns = 0;
    for (unsigned part = 0; n > 0; part++) {
        const uint8_t *end = memchr(data, '\0', n);
        size_t len = end != NULL ? (size_t)(end - data) : n;
        char *copy = piece_copy(data, len);
        struct slice text = slice_of(copy, len);
        uint32_t *before = costs_of(table);
        command_costs_take(costs, &nodes[part / 2 % 2], text, cpu_ns);
        cpu_ns = command_costs_read_cpu(text);
        if (part % 2 == 0)
            command_costs_end_poll(costs);
        check(table, before);
        REQUIRE(command_costs_fixed_ns(costs) >= FIXED_LEAST_NS &&
                command_costs_fixed_ns(costs) <= FIXED_MOST_NS);
        free(before);
        free(copy);
        data += end != NULL ? len + 1 : len;
        n -= end != NULL ? len + 1 : len;
    }
    command_counts_fini(&nodes[0]);
    command_counts_fini(&nodes[1]);
    command_costs_free(costs);
    command_table_put(table);
    return 0;
}
