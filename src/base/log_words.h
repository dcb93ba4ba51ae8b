/*
 * Names in the log: its levels, its formats, and the sites whose lines may be suppressed.
 */
#ifndef WEIR_BASE_LOG_WORDS_H
#define WEIR_BASE_LOG_WORDS_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVELS };

/* Kinds of messages that clients or the upstream can cause again and again: rate-limited by base/log_site.h. */
enum log_site {
    LOG_SITE_NONE, /* never suppressed */
    LOG_SITE_ACCEPT,
    LOG_SITE_CLIENT_CLOSED,
    LOG_SITE_CONTROL,
    LOG_SITE_DESCRIPTORS,
    LOG_SITE_MEMORY,
    LOG_SITE_NAMED_LIMIT,
    LOG_SITE_OPERATOR,
    LOG_SITE_PROXY,
    LOG_SITE_TLS,
    LOG_SITE_UPSTREAM_AWAY,
    LOG_SITE_UPSTREAM_BACK,
    LOG_SITE_UPSTREAM_CLOSED,
    LOG_SITE_UPSTREAM_LOGIN,
    LOG_SITE_UPSTREAM_OPEN,
    LOG_SITE_COUNT
};

/* See base/log_form.h. */
enum log_format { LOG_AS_TEXT, LOG_AS_LOGFMT, LOG_AS_JSON, LOG_FORMATS };

/* "debug" ..., "text" ..., "accept" ... */
const char *log_level_name(enum log_level level);
const char *log_format_name(enum log_format format);
const char *log_site_name(enum log_site site);

#endif
