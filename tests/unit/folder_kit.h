/*
 * A folder of its own for a test program that writes files; and the table of commands, which is made once.
 */
#ifndef WEIR_TESTS_FOLDER_KIT_H
#define WEIR_TESTS_FOLDER_KIT_H

#include <stdlib.h>
#include <unistd.h>

#include "limit/command/command.h"

static struct command_table *table;
static char folder[] = "/tmp/weir-unit-XXXXXX";

/* For cmocka: the program goes there. */
static inline int enter_folder(void **state)
{
    (void)state;
    table = command_table_builtin();
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

/* And leaves it, with the files that tests have written there. */
static inline int leave_folder(void **state)
{
    (void)state;
    command_table_put(table);
    unlink("weir.conf");
    unlink("secret");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

#endif
