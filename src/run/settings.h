/*
 * What all workers share, and never changes, as the configuration says.
 */
#ifndef WEIR_RUN_SETTINGS_H
#define WEIR_RUN_SETTINGS_H

#include "front/front.h"
#include "run/config.h"

/* Without what is not the configuration's: upstream, journal, unlimited. `config` outlives it. */
void settings_init(struct front_settings *settings, const struct config *config);

/* After the last worker has ended. */
void settings_fini(struct front_settings *settings);

#endif
