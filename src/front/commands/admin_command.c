#include "front/commands/admin_command.h"

#include <stdlib.h>

struct admin_command *admin_command_new(enum admin_kind kind)
{
    struct admin_command *admin_command = calloc(1, sizeof *admin_command);
    if (admin_command == NULL)
        return NULL;
    list_init(&admin_command->in_queue);
    admin_command->kind = kind;
    return admin_command;
}

void admin_command_free(struct admin_command *admin_command)
{
    if (admin_command == NULL)
        return;
    for (size_t i = 0; i < admin_command->n_differences; i++) {
        free(admin_command->differences[i].section);
        free(admin_command->differences[i].what);
        free(admin_command->differences[i].running);
        free(admin_command->differences[i].file);
    }
    build_fini(&admin_command->rows);
    free(admin_command->differences);
    free(admin_command->lines);
    free(admin_command->text);
    free(admin_command->policy);
    free(admin_command->what);
    free(admin_command->expression);
    free(admin_command->key);
    free(admin_command->lives);
    free(admin_command->error);
    free(admin_command);
}
