#include "run/config/config.h"

#include <stdlib.h>

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n_listens; i++)
        address_fini(&config->listens[i].address);
    free(config->listens);
    free(config->name);
    sources_fini(&config->sources);
    address_map_fini(&config->upstream_map);
    free(config->admin_socket);
    free(config->admin_hosts);
    free(config->log_path);
    address_fini(&config->admin_listen);
    address_fini(&config->cluster_announce);
    free(config->upstream_user);
    free(config->sentinel_user);
    free(config->sentinel_password_file);
    tls_settings_fini(&config->tls_settings);
    tls_settings_fini(&config->upstream_tls_settings);
    rules_fini(&config->rules);
    free(config);
}
