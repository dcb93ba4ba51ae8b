/*
 * A sink of the log: one file descriptor, and a thread that writes to it.
 *
 * Lines wait in a ring buffer of fixed size. log_sink_add never blocks. When the ring is full,
 * because the disk or the reader of the pipe is slow, lines are dropped until the ring has been
 * emptied. The next line then tells the number of lost lines. Lines therefore always appear in the
 * order in which they were added. A failed write is not repeated, and the lines of the write count
 * as lost.
 */
#ifndef WEIR_BASE_LOG_SINK_H
#define WEIR_BASE_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_SINK_BYTES 262144 /* bytes of the ring: some two thousand lines; chosen */

struct log_sink;

/*
 * Returns a sink for the file at `path`, which is created if need be. If `path` is NULL, the sink
 * writes to `fd`, and never closes `fd`. Returns NULL on an error, which errno names.
 */
struct log_sink *log_sink_new(const char *path, int fd);

/* Adds a line, its line end included, of at most LOG_LINE_MAX bytes. Any thread may call. */
void log_sink_add(struct log_sink *sink, const char *line, size_t len);

/*
 * Opens the path again. Lines added before may go to the old file or to the new file; no line is
 * lost.
 */
void log_sink_reopen(struct log_sink *sink);

/*
 * Waits until every line is written or lost, at most `most_ns`. False if lines are left after that
 * time.
 */
bool log_sink_flush(struct log_sink *sink, uint64_t most_ns);

/*
 * Tells the thread to end once every line is written or lost. Asynchronous. No line is added
 * afterwards.
 */
void log_sink_end(struct log_sink *sink);

/*
 * Calls log_sink_end, waits at most `most_ns`, then frees the sink. If the thread is still stuck in
 * a write, thread and sink are leaked.
 */
void log_sink_free(struct log_sink *sink, uint64_t most_ns);

/* Returns how many lines were lost so far. */
uint64_t log_sink_lost(struct log_sink *sink);

#endif
