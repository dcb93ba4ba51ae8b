/*
 * Prints for each request on standard input the slot of its keys as weir computes it: a line with a
 * number, "none", "crossing" or "hidden".
 */
#include <stdio.h>
#include <stdlib.h>

#include "limit/command/command.h"
#include "limit/command/keys.h"
#include "resp/argv.h"
#include "resp/scan.h"

static struct slice read_all(void)
{
    size_t room = 1 << 26;
    char *bytes = malloc(room);
    if (bytes == NULL)
        abort();
    return slice_of(bytes, fread(bytes, 1, room, stdin));
}

static void tell(const struct command_table *table, struct slice request, uint32_t argc)
{
    struct argv_walk walk;
    struct slice name, sub = {NULL, 0};
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &name))
        abort();
    (void)!argv_next(&walk, &sub);
    int32_t slot = keys_slot(command_find(table, name, sub), request, argc);
    const char *const words[] = {"none", "crossing", "hidden"};
    if (slot >= 0)
        printf("%d\n", (int)slot);
    else
        puts(words[-1 - slot]);
}

int main(void)
{
    struct command_table *table = command_table_builtin();
    struct request_scan scan = {0};
    struct slice all = read_all(), rest = all;
    while (rest.len > 0) {
        size_t used;
        if (request_scan(&scan, &request_limits_normal, rest.at, rest.len, &used) != SCAN_FRAME)
            return 1;
        tell(table, slice_of(rest.at, used), scan.argc);
        rest = slice_of(rest.at + used, rest.len - used);
    }
    command_table_put(table);
    free((void *)all.at);
    return 0;
}
