/*
 * A reply builder for RESP2 or RESP3, for weir's own replies (LIMIT ...). Replies of Redis are
 * passed on unchanged.
 *
 * One thread. The caller owns the struct; build_fini frees its buffer. No call fails: if memory is
 * out, the call sets is_broken, and later calls do nothing. Callers need to check is_broken only
 * before they send the reply.
 */
#ifndef WEIR_RESP_BUILD_H
#define WEIR_RESP_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct build {
    char *at;
    size_t len, room; /* len <= room */
    bool is_resp3;
    bool is_broken; /* the reply is incomplete, and must not be used */
};

void build_init(struct build *build, bool is_resp3);
void build_fini(struct build *build);

/* ---- headers of aggregates: the caller adds the elements ---- */

void build_map(struct build *build, size_t pairs); /* RESP2: an array of 2 * pairs */
void build_array(struct build *build, size_t n);
void build_set(struct build *build, size_t n); /* RESP2: an array */
void build_header(struct build *build, char type, int64_t number);

/* ---- values ---- */

void build_bulk(struct build *build, struct slice bytes);
void build_bulk_str(struct build *build, const char *text);
__attribute__((format(printf, 2, 3))) void build_printf_bulk(struct build *build,
                                                             const char *format, ...);
void build_int(struct build *build, int64_t number);
void build_nil(struct build *build);

/* Appends bytes in RESP: whole elements, or a header. */
void build_raw(struct build *build, struct slice bytes);

/*
 * Append "+text" (build_status) or "-text" (build_error). CR and LF in `text` become spaces. The
 * text of an error begins with its code: "ERR ...".
 */
void build_status(struct build *build, struct slice text);
void build_error(struct build *build, struct slice text);

#endif
