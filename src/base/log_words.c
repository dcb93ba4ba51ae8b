#include "base/log_words.h"

const char *log_level_name(enum log_level level)
{
    static const char *const names[LOG_LEVELS] = {"debug", "info", "warn", "error"};
    return names[level];
}

const char *log_format_name(enum log_format format)
{
    static const char *const names[LOG_FORMATS] = {"text", "logfmt", "json"};
    return names[format];
}

const char *log_site_name(enum log_site site)
{
    static const char *const names[LOG_SITE_COUNT] = {
        [LOG_SITE_NONE] = "none",
        [LOG_SITE_ACCEPT] = "accept",
        [LOG_SITE_CLIENT_CLOSED] = "client_closed",
        [LOG_SITE_CONTROL] = "control",
        [LOG_SITE_DESCRIPTORS] = "descriptors",
        [LOG_SITE_MEMORY] = "memory",
        [LOG_SITE_NAMED_LIMIT] = "named_limit",
        [LOG_SITE_OPERATOR] = "operator",
        [LOG_SITE_PROXY] = "proxy",
        [LOG_SITE_TLS] = "tls",
        [LOG_SITE_UPSTREAM_AWAY] = "upstream_away",
        [LOG_SITE_UPSTREAM_BACK] = "upstream_back",
        [LOG_SITE_UPSTREAM_CLOSED] = "upstream_closed",
        [LOG_SITE_UPSTREAM_LOGIN] = "upstream_login",
        [LOG_SITE_UPSTREAM_OPEN] = "upstream_open",
    };
    return names[site];
}
