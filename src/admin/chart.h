/*
 * A list of points as the path of an SVG chart, in a box 300 wide: the newest at the right edge.
 */
#ifndef WEIR_ADMIN_CHART_H
#define WEIR_ADMIN_CHART_H

#include <stddef.h>

#include "base/text.h"

#define CHART_WIDTH 300

/* The last n of HISTORY_POINTS values; `most` is at the top of a box of that height. */
struct chart {
    const float *points;
    size_t n;
    double most;
    double height;
};

/* The greatest of the last n values. */
double chart_peak(const float *points, size_t n);

void chart_line(struct text *out, const struct chart *chart);
void chart_area(struct text *out, const struct chart *chart); /* down to the bottom */

/* How far from the top a value is. */
double chart_y(const struct chart *chart, double value);

#endif
