/*
 * One line a message, to stderr, in one write. Any thread.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Lines below `level` are dropped. Call before threads start. */
void log_set_level(enum log_level level);

/* printf's format. Control characters in the result are shown as '?'; an overlong line is cut. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
