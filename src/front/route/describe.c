#include "front/route/describe.h"

#include "front/commands/limit_command.h"
#include "front/commands/unknown.h"

static struct slice located(const struct request_scan *scan, struct slice bytes, uint32_t i)
{
    if (i >= scan->argc || (uint64_t)scan->args[i].off + scan->args[i].len > bytes.len)
        return slice_of("", 0);
    return slice_of(bytes.at + scan->args[i].off, scan->args[i].len);
}

static const struct command *find_command(const struct front *front, struct slice name, struct slice sub)
{
    const struct command *command = command_find(front->commands, name, sub);
    if (command->id == 0 && sub.len > 0) {
        const struct command *container = command_find(front->commands, name, slice_of("", 0));
        if (container->flow == FLOW_OWN)
            return container;
    }
    if (command->id != 0 || !unknown_by_luck(name))
        return command;
    /* Redis recognizes POST and Host: up to a NUL. */
    const struct command *cut = command_find(front->commands, slice_str(name.at), slice_of("", 0));
    return cut->flow == FLOW_DROP ? cut : command;
}

void describe_request(struct request *request, const struct front *front, const struct request_scan *scan,
                      struct slice bytes)
{
    request->bytes = bytes;
    request->argc = scan->argc;
    request->name = located(scan, bytes, 0);
    request->args[0] = located(scan, bytes, 1);
    request->args[1] = located(scan, bytes, 2);
    request->command = limit_command_as_configured(front, find_command(front, request->name, request->args[0]));
}
