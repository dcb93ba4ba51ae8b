/*
 * The files of admin/page/, compiled into the program.
 */
#ifndef WEIR_ADMIN_PAGE_FILES_H
#define WEIR_ADMIN_PAGE_FILES_H

#include "base/slice.h"

struct slice page_html(void);
struct slice page_css(void);
struct slice page_js(void);

#endif
