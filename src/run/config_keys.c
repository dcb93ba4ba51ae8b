#include "run/config_keys.h"

#include <stdlib.h>

#include "base/why.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the table ---- */

#define NUMBER(field, from, to) .offset = offsetof(struct config, field), .least = (from), .most = (to)
#define LIVE(field, from, to) NUMBER(rules.field, from, to) /* of what can change while weir runs */
#define TEXT(field) .offset = offsetof(struct config, field)
#define STAYS .needs_restart = true
#define FILES .names_file = true

static const struct config_key keys[] = {
    {.name = "listen", .initial = "127.0.0.1:6380", .set = key_listen, .is_list = true, STAYS},
    {.name = "proxy-protocol-from", .set = key_proxies, .is_list = true},
    {.name = "upstream", .initial = "127.0.0.1:6379", .set = key_upstream, STAYS},
    {.name = "upstream-user", .set = key_user, STAYS},
    {.name = "upstream-password-file", .set = key_password_file, .names_file = true},
    {.name = "clients-as", .initial = "client", .set = key_clients_as, STAYS},
    {.name = "workers", .initial = "cores", .set = key_workers, NUMBER(workers, "1", "256"), STAYS},
    {.name = "lanes", .initial = "shared", .set = key_lanes, STAYS},
    {.name = "max-clients", .initial = "10000", .set = key_count, LIVE(max_clients, "1", "1000000")},
    {.name = "max-subjects", .initial = "1000000", .set = key_subjects, NUMBER(max_subjects, "1", "100000000"), STAYS},
    {.name = "max-lanes", .initial = "0", .set = key_count, LIVE(max_lanes, "0", "1000000")},
    {.name = "output-limit", .initial = "64mb", .set = key_bytes, LIVE(output_limit_bytes, "64kb", "64gb")},
    {.name = "memory-limit", .initial = "0", .set = key_bytes_or_none, LIVE(memory_limit_bytes, "1mb", "1024gb")},
    {.name = "connect-timeout", .initial = "1s", .set = key_time, NUMBER(connect_timeout_ns, "1ms", "1h"), STAYS},
    {.name = "upstream-timeout", .initial = "0", .set = key_timeout, NUMBER(upstream_timeout_ns, "10ms", "1h"), STAYS},
    {.name = "idle-timeout", .initial = "0", .set = key_timeout, LIVE(idle_timeout_ns, "10ms", "365d")},
    {.name = "request-timeout", .initial = "60s", .set = key_timeout, LIVE(request_timeout_ns, "10ms", "1d")},
    {.name = "handshake-timeout", .initial = "10s", .set = key_time, LIVE(handshake_timeout_ns, "10ms", "1h")},
    {.name = "drain-timeout", .initial = "30s", .set = key_timeout, NUMBER(drain_timeout_ns, "1ms", "1h"), STAYS},
    {.name = "identity", .initial = "user, ip", .set = key_identity, .is_list = true},
    {.name = "error-prefix", .initial = "THROTTLED", .set = key_prefix},
    {.name = "mode", .initial = "enforce", .set = key_mode},
    {.name = "limit-prefix", .initial = "limit:", .set = key_limit_prefix},
    {.name = "slowlog-log-slower-than", .initial = "10ms", .set = key_slow, LIVE(slow_ns, "1ms", "1d")},
    {.name = "slowlog-max-len", .initial = "128", .set = key_count, LIVE(slow_entries, "0", "10000")},
    {.name = "cl-throttle", .initial = "prefix", .set = key_cell},
    {.name = "limit-when-down", .initial = "error", .set = key_when_down},
    {.name = "log", .initial = "stderr", .set = key_log, .is_list = true, STAYS},
    {.name = "log-format", .initial = "text", .set = key_log_format},
    {.name = "log-level", .initial = "info", .set = key_log_level},
    {.name = "tls-cert-file", .set = key_text, TEXT(tls_settings.texts[TLS_CERT]), FILES},
    {.name = "tls-key-file", .set = key_text, TEXT(tls_settings.texts[TLS_KEY]), FILES},
    {.name = "tls-ca-cert-file", .set = key_text, TEXT(tls_settings.texts[TLS_CA]), FILES},
    {.name = "tls-auth-clients", .initial = "no", .set = key_tls_auth, FILES},
    {.name = "tls-protocols", .initial = "TLSv1.2, TLSv1.3", .set = key_tls_protocols, FILES},
    {.name = "tls-ciphers", .set = key_text, TEXT(tls_settings.texts[TLS_CIPHERS]), FILES},
    {.name = "tls-ciphersuites", .set = key_text, TEXT(tls_settings.texts[TLS_CIPHERSUITES]), FILES},
    {.name = "upstream-tls-ca-file", .set = key_text, TEXT(upstream_tls_settings.texts[TLS_CA]), FILES},
    {.name = "upstream-tls-cert-file", .set = key_text, TEXT(upstream_tls_settings.texts[TLS_CERT]), FILES},
    {.name = "upstream-tls-key-file", .set = key_text, TEXT(upstream_tls_settings.texts[TLS_KEY]), FILES},
    {.name = "upstream-tls-server-name", .set = key_text, TEXT(upstream_tls_settings.texts[TLS_SERVER_NAME]), FILES},
    {.name = "upstream-tls-verify", .initial = "yes", .set = key_tls_verify, FILES},
    {.name = "listen", .set = key_admin_listen, .is_admin = true, STAYS},
    {.name = "host", .set = key_admin_host, .is_list = true, .is_admin = true, STAYS},
    {.name = "socket", .set = key_admin_socket, .is_admin = true, STAYS},
    /* of older files: does nothing */
    {.name = "lane-stall"},
};

size_t config_keys_count(void)
{
    return COUNT_OF(keys);
}

const struct config_key *config_key_at(size_t i)
{
    return &keys[i];
}

enum section_kind config_key_section(const struct config_key *key)
{
    return key->is_admin ? SECTION_ADMIN : SECTION_WEIR;
}

bool config_key_is_dead(const struct config_key *key)
{
    return key->set == NULL;
}

size_t config_key_find(enum section_kind section, struct slice name)
{
    size_t i = 0;
    while (i < COUNT_OF(keys) &&
           !(config_key_section(&keys[i]) == section && slice_eq_nocase(name, slice_str(keys[i].name))))
        i++;
    return i;
}

const char *config_key_name(const struct config_key *key)
{
    return key->name;
}

bool config_key_is_list(const struct config_key *key)
{
    return key->is_list;
}

bool config_key_needs_restart(const struct config_key *key)
{
    return key->needs_restart;
}

bool config_key_is_live(const struct config_key *key)
{
    return !key->needs_restart && !key->names_file;
}

const char *config_key_default(const struct config_key *key)
{
    return key->initial;
}

enum key_result config_key_set(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size)
{
    if (config_key_is_dead(key)) {
        why_set(why, why_size, "does nothing any more: take it out");
        return KEY_SET_WITH_WARNING;
    }
    if (value.len > 0)
        return key->set(key, config, value, why, why_size);
    why_set(why, why_size, "a value is missing");
    return KEY_BAD;
}

void config_key_set_default(const struct config_key *key, struct config *config)
{
    char why[CONFIG_WHY_ROOM];
    if (key->initial != NULL && key->set(key, config, slice_str(key->initial), why, sizeof why) != KEY_SET)
        abort(); /* the table itself is wrong */
}
