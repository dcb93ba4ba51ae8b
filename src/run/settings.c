#include "run/settings.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/mem.h"

void settings_init(struct front_settings *settings, const struct config *config)
{
    settings->lanes_private = config->lanes_private;
    settings->subjects = subjects_new(config->max_subjects);
    settings->key_subjects = subjects_new(config->max_subjects);
    settings->slowlog = slowlog_new();
    settings->n_workers = config->workers;
    settings->upstream_user = config->upstream_user != NULL ? slice_str(config->upstream_user) : SLICE("default");
    settings->tallies = mem_zalloc(config->workers, sizeof(struct tally *));
    settings->tops = mem_zalloc(config->workers, sizeof(struct top *));
    quota_settings_init(&settings->quota);
    if (getrandom(&settings->share_key, sizeof settings->share_key, 0) != (ssize_t)sizeof settings->share_key)
        abort();
    for (unsigned w = 0; w < config->workers; w++) {
        settings->tallies[w] = tallies_new();
        settings->tops[w] = top_new();
    }
}

void settings_fini(struct front_settings *settings)
{
    for (unsigned w = 0; w < settings->n_workers; w++) {
        free(settings->tallies[w]);
        top_free(settings->tops[w]);
    }
    free(settings->tallies);
    free(settings->tops);
    subjects_free(settings->subjects);
    subjects_free(settings->key_subjects);
    slowlog_free(settings->slowlog);
    quota_settings_fini(&settings->quota);
}
