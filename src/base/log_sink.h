/*
 * Where lines of the log go: one file descriptor, and a thread that writes to it.
 *
 * Lines wait in a ring buffer of fixed size. log_sink_add never blocks: when the ring is full, because the disk or the
 * reader of the pipe is slow, lines are dropped until it has been emptied, and their number is the next line written.
 * So lines always appear in the order in which they were added. A write that fails is not repeated; its lines count as
 * lost.
 */
#ifndef WEIR_BASE_LOG_SINK_H
#define WEIR_BASE_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_SINK_BYTES 262144 /* of the ring: some two thousand lines */

struct log_sink;

/* Write to the file at `path`, created if need be, or where that is NULL to `fd`, which stays open. NULL: see errno. */
struct log_sink *log_sink_new(const char *path, int fd);

/* Add a line, its line end included, of at most LOG_LINE_MAX bytes. Any thread. */
void log_sink_add(struct log_sink *sink, const char *line, size_t len);

/* Open the path again. Lines added before may end up in the old file or in the new one; none is lost. */
void log_sink_reopen(struct log_sink *sink);

/* Wait until every line is written or lost, but no longer than `most_ns`. False: that time was not enough. */
bool log_sink_flush(struct log_sink *sink, uint64_t most_ns);

/* Tell the thread to end once every line is written or lost. Asynchronous. No line is added afterwards. */
void log_sink_end(struct log_sink *sink);

/* log_sink_end, wait for at most `most_ns`, then free. A thread that is still stuck in a write is leaked with the sink. */
void log_sink_free(struct log_sink *sink, uint64_t most_ns);

/* How many lines were lost so far. */
uint64_t log_sink_lost(struct log_sink *sink);

#endif
