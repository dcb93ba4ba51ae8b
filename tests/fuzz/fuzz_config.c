/* A configuration file of any bytes is read to its end, or refused with at least one error. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run/config/config_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_report(void *arg, bool is_error, const char *line)
{
    unsigned *errors = arg;
    *errors += is_error && line[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct command_table *table;
    static char path[64];
    static int fd = -1;
    unsigned errors = 0;
    if (fd < 0) {
        fd = memfd_create("weir.conf", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        table = command_table_builtin();
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    struct config_file file = {.path = path, .report = on_report, .arg = &errors};
    struct config *config = config_read(&file, table);
    config_file_fini(&file);
    if (!config != (errors > 0))
        abort();
    config_free(config);
    return 0;
}
