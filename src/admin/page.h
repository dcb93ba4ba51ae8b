/*
 * The page for operators: one HTML document with everything in it, that is read without JavaScript as well.
 *
 * page/page.html is a template: {{words}} in it are slots, and a table here says what comes into each. Nothing that a
 * client, Redis or the configuration said gets into it unescaped.
 */
#ifndef WEIR_ADMIN_PAGE_H
#define WEIR_ADMIN_PAGE_H

#include "admin/snapshot.h"
#include "base/text.h"

/* `nonce` is what the response's content security policy allows styles and scripts by. */
void page_write(struct text *out, const struct snapshot *snapshot, const char *nonce);

#endif
