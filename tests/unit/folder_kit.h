/*
 * A temporary folder for a test program that writes files, and the command table, which is made
 * once.
 */
#ifndef WEIR_TESTS_FOLDER_KIT_H
#define WEIR_TESTS_FOLDER_KIT_H

#include <stdlib.h>
#include <unistd.h>

#include "limit/command/command.h"

static struct command_table *table;
static char folder[] = "/tmp/weir-unit-XXXXXX";

/* For cmocka's set-up: makes the folder and enters it. */
static inline int enter_folder(void **state)
{
    (void)state;
    table = command_table_builtin();
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

/* For cmocka's tear-down: removes the tests' files and the folder. */
static inline int leave_folder(void **state)
{
    (void)state;
    command_table_put(table);
    unlink("weir.conf");
    unlink("secret");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

#endif
