/*
 * Draws a list of values as an SVG path, in a box CHART_WIDTH wide: the newest value at the right edge.
 */
#ifndef WEIR_ADMIN_CHART_H
#define WEIR_ADMIN_CHART_H

#include <stddef.h>

#include "base/text.h"

#define CHART_WIDTH 300

struct chart {
    const float *points; /* HISTORY_POINTS values, of which the last n are drawn */
    size_t n;
    double most; /* the value at the top of the box */
    double height;
};

/* The greatest of the last n of HISTORY_POINTS values. */
double chart_peak(const float *points, size_t n);

void chart_line(struct text *out, const struct chart *chart);
void chart_area(struct text *out, const struct chart *chart); /* closed along the bottom */

/* The y coordinate of a value; 0 is the top. */
double chart_y(const struct chart *chart, double value);

#endif
