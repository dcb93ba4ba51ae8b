#include "admin/chart.h"

#include "admin/history.h"

#define EDGE 1.5 /* so that a line at the top or the bottom is not cut in half */

double chart_peak(const float *points, size_t n)
{
    double peak = 0;
    for (size_t i = HISTORY_POINTS - n; i < HISTORY_POINTS; i++)
        peak = (double)points[i] > peak ? (double)points[i] : peak;
    return peak;
}

double chart_y(const struct chart *chart, double value)
{
    double share = chart->most > 0 ? value / chart->most : 0;
    return EDGE + (1 - (share < 1 ? share : 1)) * (chart->height - 2 * EDGE);
}

static double x_of(size_t i)
{
    return (double)i * CHART_WIDTH / (HISTORY_POINTS - 1);
}

void chart_line(struct text *out, const struct chart *chart)
{
    for (size_t i = HISTORY_POINTS - chart->n; i < HISTORY_POINTS; i++)
        text_print(out, "%c%.4g %.4g", i == HISTORY_POINTS - chart->n ? 'M' : 'L', x_of(i),
                   chart_y(chart, (double)chart->points[i]));
}

void chart_area(struct text *out, const struct chart *chart)
{
    if (chart->n == 0)
        return;
    chart_line(out, chart);
    text_print(out, "V%g", chart->height);
    text_print(out, "H%.4gZ", x_of(HISTORY_POINTS - chart->n));
}
