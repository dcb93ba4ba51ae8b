/*
 * Where lines of the log go: one file descriptor, and a thread that writes to it.
 *
 * Lines wait in a ring of fixed size. Who adds one never waits: when the ring is full, because a disk or the reader of a
 * pipe is slow, lines are lost until it has emptied; how many is the next thing that is written. So whatever a line
 * says comes after all that was said before it. A write that fails loses its lines too, and is not tried again.
 */
#ifndef WEIR_BASE_LOG_SINK_H
#define WEIR_BASE_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_SINK_BYTES 262144 /* lines that wait: some two thousand */

struct log_sink;

/* To a file that is created if need be (path), or to `fd` with path NULL; neither is closed by anybody else. NULL: errno. */
struct log_sink *log_sink_new(const char *path, int fd);

/* A line with its end, at most LOG_LINE_MAX bytes. Any thread. */
void log_sink_add(struct log_sink *sink, const char *line, size_t len);

/* Open the path anew; the old file gets all that was added before, or some of it comes in the new one: nothing is lost. */
void log_sink_reopen(struct log_sink *sink);

/* Wait until all that was added is written or lost, but no longer than `most_ns`. False: that long was not enough. */
bool log_sink_flush(struct log_sink *sink, uint64_t most_ns);

/* The same, then end the thread and free. One that still cannot write is left behind. */
void log_sink_free(struct log_sink *sink, uint64_t most_ns);

uint64_t log_sink_lost(struct log_sink *sink);

#endif
