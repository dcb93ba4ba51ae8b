/*
 * The page for operators: one HTML document with everything in it, readable without JavaScript too.
 *
 * page/page.html is a template: {{words}} in it are slots, and a table in page.c says what fills each. Whatever comes
 * from a client, Redis or the configuration is escaped.
 */
#ifndef WEIR_ADMIN_PAGE_H
#define WEIR_ADMIN_PAGE_H

#include "admin/snapshot.h"
#include "base/text.h"

/* `nonce`: the nonce for styles and scripts in the response's Content-Security-Policy. */
void page_write(struct text *out, const struct snapshot *snapshot, const char *nonce);

#endif
