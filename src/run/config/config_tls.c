#include "run/config/config_tls.h"

#include <stdio.h>
#include <string.h>

/* The keys of the settings of each side; NULL: the side has no such key. */
static const char *const keys[][TLS_SETTINGS] = {
    [TLS_ACCEPT] = {[TLS_CERT] = "tls-cert-file",
                    [TLS_KEY] = "tls-key-file",
                    [TLS_CA] = "tls-ca-cert-file",
                    [TLS_CIPHERS] = "tls-ciphers",
                    [TLS_CIPHERSUITES] = "tls-ciphersuites"},
    [TLS_CONNECT] = {[TLS_CERT] = "upstream-tls-cert-file",
                     [TLS_KEY] = "upstream-tls-key-file",
                     [TLS_CA] = "upstream-tls-ca-file",
                     [TLS_SERVER_NAME] = "upstream-tls-server-name"},
};

struct loading {
    struct config_file *file;
    enum tls_side side;
};

static void say_for(struct config_file *file, bool is_error, const char *key, const char *what)
{
    const struct entry *e = config_file_entry(file, SECTION_WEIR, key);
    if (e != NULL)
        entry_says(file, is_error, e, what);
    else
        config_file_say(file, is_error, (struct location){0}, "weir", key, what);
}

static void say(void *arg, bool is_error, enum tls_setting which, const char *what)
{
    const struct loading *l = arg;
    say_for(l->file, is_error, keys[l->side][which], what);
}

/* True if certificate and key are both given, or neither: one is of no use without the other. */
static bool has_pair(const struct loading *l, const struct tls_settings *settings)
{
    bool has_cert = settings->texts[TLS_CERT] != NULL, has_key = settings->texts[TLS_KEY] != NULL;
    char what[CONFIG_WHY_ROOM];
    if (has_cert == has_key)
        return true;
    enum tls_setting given = has_cert ? TLS_CERT : TLS_KEY;
    snprintf(what, sizeof what, "needs %s", keys[l->side][has_cert ? TLS_KEY : TLS_CERT]);
    say_for(l->file, true, keys[l->side][given], what);
    return false;
}

static bool has_tls_listen(const struct config *config)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (config->listens[i].address.is_tls)
            return true;
    return false;
}

/* Warns of settings for a side that does not use TLS: they have no effect. */
static void warn_useless(const struct loading *l, const char *what)
{
    for (size_t i = 0; i < TLS_SETTINGS; i++) {
        const struct entry *e =
            keys[l->side][i] != NULL ? config_file_entry(l->file, SECTION_WEIR, keys[l->side][i]) : NULL;
        if (e != NULL)
            entry_says(l->file, false, e, what);
    }
}

static void load_listeners(struct config *config, struct config_file *file)
{
    struct loading l = {file, TLS_ACCEPT};
    const struct tls_settings *settings = &config->tls_settings;
    if (!has_tls_listen(config)) {
        warn_useless(&l, "has no effect: no address of listen begins with tls:");
        return;
    }
    if (!has_pair(&l, settings))
        return;
    if (settings->texts[TLS_CERT] == NULL)
        say_for(file, true, "listen", "tls: needs tls-cert-file and tls-key-file");
    else if (settings->auth != TLS_AUTH_NO && settings->texts[TLS_CA] == NULL)
        say_for(file, true, "tls-auth-clients",
                "needs tls-ca-cert-file, the authorities that sign certificates of "
                "clients");
    else
        config->rules.tls = tls_context_new(settings, TLS_ACCEPT, say, &l);
}

static void load_upstream(struct config *config, struct config_file *file)
{
    struct loading l = {file, TLS_CONNECT};
    const struct tls_settings *settings = &config->upstream_tls_settings;
    if (!config->sources.addresses[0].is_tls) {
        warn_useless(&l, "has no effect: upstream does not begin with tls:");
        return;
    }
    if (!has_pair(&l, settings))
        return;
    config->rules.upstream_tls = tls_context_new(settings, TLS_CONNECT, say, &l);
}

void config_tls_load(struct config *config, struct config_file *file)
{
    load_listeners(config, file);
    load_upstream(config, file);
}
