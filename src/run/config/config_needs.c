#include "run/config/config_needs.h"

#include "run/config/config_edit.h"

static const struct entry *entry_of(const struct config_file *file, const char *key)
{
    const struct line_name line = {SECTION_WEIR, SLICE(""), slice_str(key)};
    return config_file_next_line(file, &line, NULL);
}

/* ---- replicas ---- */

static void check_reads(const struct config *config, struct config_file *file)
{
    if (config->reads.reads != READS_MASTER && config->sources.form == SOURCES_SERVER)
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

/* ---- clusters ---- */

static void want_cluster(struct config_file *file, const char *key)
{
    entry_error(file, entry_of(file, key),
                "upstream names no cluster: write upstream = cluster:HOST:PORT, or take it out");
}

static void check_cluster(const struct config *config, struct config_file *file)
{
    bool is_cluster = config->sources.form == SOURCES_CLUSTER;
    if (!is_cluster && config->cross_slot != CROSS_SLOT_SPLIT)
        want_cluster(file, "cross-slot");
    if (!is_cluster && config->refuses_cluster_commands)
        want_cluster(file, "cluster-commands");
    if (!is_cluster && config->cluster_announce.host != NULL)
        want_cluster(file, "cluster-announce");
    if (is_cluster && config->lanes_private)
        entry_error(file, entry_of(file, "lanes"),
                    "a client of a cluster has no single server for a connection of its own: write lanes = shared");
    if (is_cluster && config->cluster_announce.host != NULL && config->refuses_cluster_commands)
        entry_error(file, entry_of(file, "cluster-announce"),
                    "nothing tells it with cluster-commands = refuse: take it out");
}

void config_needs_check(const struct config *config, struct config_file *file)
{
    check_reads(config, file);
    check_sentinels(config, file);
    check_cluster(config, file);
}

/* ---- what could be meant, and can hardly be wanted ---- */

void config_lint_sources(const struct config *config, struct config_file *file)
{
    bool is_known = config->sources.addresses[0].is_tls && !config->upstream_tls_settings.is_unverified;
    const struct entry *upstream = entry_of(file, "upstream");
    if (!sources_lead_on(&config->sources) || is_known || !networks_are_none(&config->upstream_allow))
        return;
    entry_says(file, false, upstream,
               "passwords go to any address that names, sentinels or servers tell: write tls: in front of the "
               "addresses, with upstream-tls-ca-file, or upstream-allow = NETWORK");
}
