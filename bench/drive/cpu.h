/*
 * The processor time of a process, all threads together, from the scheduler: the time spent
 * running, and the time spent waiting for a processor.
 */
#ifndef WEIR_BENCH_CPU_H
#define WEIR_BENCH_CPU_H

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct cpu {
    uint64_t ran_ns;
    uint64_t waited_ns; /* ready to run, and not running */
};

/*
 * Returns the processor time since the start of the process; 0 if there is no such process. Ended
 * threads do not count.
 */
static inline struct cpu cpu_of(long pid)
{
    struct cpu sum = {0};
    char path[320];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return sum;
    struct dirent *task;
    while ((task = readdir(tasks))) {
        struct cpu one;
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%s/schedstat", pid, task->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%" SCNu64 " %" SCNu64, &one.ran_ns, &one.waited_ns) == 2) {
            sum.ran_ns += one.ran_ns;
            sum.waited_ns += one.waited_ns;
        }
        fclose(file);
    }
    closedir(tasks);
    return sum;
}

#endif
