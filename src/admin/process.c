#include "admin/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &pages) != 2)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
    uint64_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n - 3; /* itself, "." and ".." */
}

struct process process_look(void)
{
    struct process process = {.resident_bytes = resident_bytes(), .open_fds = open_fds()};
    struct rusage usage;
    struct rlimit files;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        process.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        process.max_fds = files.rlim_cur;
    return process;
}
