#include "admin/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double process_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

double process_cpu_seconds(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? process_seconds(usage.ru_utime) + process_seconds(usage.ru_stime) : 0;
}

uint64_t process_resident_bytes(void)
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

uint64_t process_open_fds(void)
{
    uint64_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n - 3; /* the folder itself, "." and ".." */
}

uint64_t process_max_fds(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}
