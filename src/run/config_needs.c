#include "run/config_needs.h"

#include "run/config_edit.h"

static const struct entry *entry_of(const struct config_file *file, const char *key)
{
    const struct line_name line = {SECTION_WEIR, SLICE(""), slice_str(key)};
    return config_file_next_line(file, &line, NULL);
}

/* ---- replicas ---- */

static void check_reads(const struct config *config, struct config_file *file)
{
    if (config->reads.reads != READS_MASTER && !sources_are_replicated(&config->sources))
        entry_error(file, entry_of(file, "reads"),
                    "upstream names one server, which has no replicas for weir: write upstream = HOST:PORT, HOST:PORT, "
                    "or upstream = sentinel:NAME@HOST:26379, or reads = master");
}

/* ---- sentinels ---- */

static void check_sentinels(const struct config *config, struct config_file *file)
{
    static const char *const keys[] = {"sentinel-user", "sentinel-password-file"};
    const struct entry *user = entry_of(file, keys[0]);
    if (user != NULL && entry_of(file, keys[1]) == NULL)
        entry_error(file, user, "needs sentinel-password-file beside it");
    for (size_t i = 0; config->sources.form != SOURCES_SENTINEL && i < sizeof keys / sizeof keys[0]; i++) {
        const struct entry *e = entry_of(file, keys[i]);
        if (e != NULL)
            entry_error(file, e,
                        "upstream names no sentinels: write upstream = sentinel:NAME@HOST:26379, or take it out");
    }
}

void config_needs_check(const struct config *config, struct config_file *file)
{
    check_reads(config, file);
    check_sentinels(config, file);
}

/* ---- what could be meant, and can hardly be wanted ---- */

void config_lint_sources(const struct config *config, struct config_file *file)
{
    bool is_known = config->sources.addresses[0].is_tls && !config->upstream_tls_settings.is_unverified;
    const struct entry *upstream = entry_of(file, "upstream");
    if (!sources_are_replicated(&config->sources) || is_known || !networks_are_none(&config->upstream_allow))
        return;
    entry_says(file, false, upstream,
               "passwords go to any address that names, sentinels or servers tell: write tls: in front of the "
               "addresses, with upstream-tls-ca-file, or upstream-allow = NETWORK");
}
