/*
 * Tests of threads that log into one file while the file is rotated again and again: every line is
 * whole, in order, and not lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_sink.h"

#define WRITERS 4
#define LINES 500 /* fewer than the ring holds, so that none is lost */
#define TURNS 20

static struct log_sink *sink;

static void *write_on(void *arg)
{
    char line[64];
    for (unsigned i = 0; i < LINES; i++)
        log_sink_add(sink, line,
                     (size_t)snprintf(line, sizeof line, "%s %u.\n", (const char *)arg, i));
    return NULL;
}

/* The number of the writers' lines in the file. Each line must follow its writer's line before. */
static unsigned check_file(const char *path, unsigned next[WRITERS])
{
    char line[256];
    unsigned n = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char wanted[64];
        unsigned writer = (unsigned)(line[0] - 'a');
        assert_true(writer < WRITERS);
        snprintf(wanted, sizeof wanted, "%c %u.\n", line[0], next[writer]++);
        assert_string_equal(line, wanted);
        n++;
    }
    fclose(file);
    return n;
}

static void no_line_is_lost(void **state)
{
    (void)state;
    static char names[WRITERS][2] = {"a", "b", "c", "d"};
    char folder[] = "/tmp/weir-test-log-XXXXXX";
    char path[64];
    char moved[TURNS][64];
    pthread_t threads[WRITERS];
    unsigned next[WRITERS] = {0};
    unsigned n = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    sink = log_sink_new(path, -1);
    assert_non_null(sink);
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, names[i]), 0);
    for (int i = 0; i < TURNS; i++) {
        snprintf(moved[i], sizeof moved[i], "%s/log.%d", folder, i);
        assert_int_equal(rename(path, moved[i]), 0);
        log_sink_reopen(sink);
        assert_true(log_sink_flush(sink, 20 * NS_PER_S));
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(log_sink_lost(sink), 0);
    log_sink_free(sink, 20 * NS_PER_S);
    for (int i = 0; i < TURNS; i++) {
        n += check_file(moved[i], next);
        unlink(moved[i]);
    }
    n += check_file(path, next);
    unlink(path);
    rmdir(folder);
    assert_int_equal(n, WRITERS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_line_is_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
