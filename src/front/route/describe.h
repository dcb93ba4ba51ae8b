/*
 * What a request asks for: its words, and its row of the command table.
 */
#ifndef WEIR_FRONT_DESCRIBE_H
#define WEIR_FRONT_DESCRIBE_H

#include "base/slice.h"
#include "front/front.h"
#include "front/route/request.h"
#include "resp/scan.h"

/* A request of those bytes; the rest of it stays as it is. */
void describe_request(struct request *request, const struct front *front, const struct request_scan *scan,
                      struct slice bytes);

#endif
