/* Charts. A pointer over a chart, or the arrow keys, show the values of the chart at one moment. */

const POINTS = 150, STEP_S = 2, WIDTH = 300, EDGE = 1.5;

const peak = (points) => Math.max(0, ...points);
const short4 = (x) => Number(x.toPrecision(4));
const height = (value, most, high) => short4(EDGE + (1 - (most > 0 ? Math.min(value / most, 1) : 0)) * (high - 2 * EDGE));
const across = (points, i) => short4((POINTS - points.length + i) * WIDTH / (POINTS - 1));
const line = (points, most, high) =>
  peak(points) > 0 ? points.map((v, i) => (i ? 'L' : 'M') + across(points, i) + ' ' + height(v, most, high)).join('') : '';
const area = (points, most, high) => {
  const top = line(points, most, high);
  return top && top + 'V' + high + 'H' + across(points, 0) + 'Z';
};

/* ---- the history: fetched whole at first, then only new points ---- */

/* time of the newest point, and time of the newest answer */
let last = 0, newestMs = 0, seenMs = 0;
const series = {}, tracks = new Map();
const append = (kept, fresh) => { kept.push(...fresh); kept.splice(0, kept.length - POINTS); };
const forget = () => {
  last = 0;
  tracks.clear();
  for (const name in series) delete series[name];
};
const remember = (stats) => {
  const { step_seconds, last: newest, ...lists } = stats.history;
  for (const name in lists) append(series[name] ||= [], lists[name]);
  const known = new Set();
  for (const limit of stats.limits) {
    if (!limit.history) continue;
    const track = tracks.get(limit.rule) || { allowed: [], over: [] };
    append(track.allowed, limit.history.allowed_per_second);
    append(track.over, limit.history.over_per_second);
    tracks.set(limit.rule, track);
    known.add(limit.rule);
  }
  for (const rule of tracks.keys()) if (!known.has(rule)) tracks.delete(rule);
  if (newest !== last) newestMs = stats.time_ms;
  last = newest;
  seenMs = stats.time_ms;
};

/* ---- the values of a chart at one moment ---- */

const tip = $('tip'), cross = make('div', 'cross');
let reading = null; /* the plot being read, and the index of its point */

const closeTip = () => {
  reading = null;
  tip.hidden = true;
  cross.remove();
};

const showTip = () => {
  const { plot, at } = reading, lists = plot.read().filter(([, list]) => list.length > 0);
  if (!plot.node.isConnected || lists.length === 0) return closeTip();
  const back = POINTS - 1 - at;
  const values = lists.map(([label, list, figure]) => {
    const value = list[list.length - 1 - back];
    return label + ' ' + (value === undefined ? '\u2013' : figure(value));
  });
  write(tip, clock(newestMs - back * STEP_S * 1000) + '  ' + values.join(', '));
  mark(plot.node, 'aria-valuenow', String(-back * STEP_S));
  mark(plot.node, 'aria-valuetext', tip.textContent);
  cross.style.left = at * 100 / (POINTS - 1) + '%';
  if (cross.parentNode !== plot.node) plot.node.append(cross);
  tip.hidden = false;
  const box = plot.node.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const x = box.left + box.width * at / (POINTS - 1) - own.width / 2;
  tip.style.left = Math.max(4, Math.min(x, document.documentElement.clientWidth - own.width - 4)) + 'px';
  tip.style.top = (box.top > own.height + 8 ? box.top - own.height - 4 : box.bottom + 4) + 'px';
};

const clamp = (at) => Math.max(0, Math.min(POINTS - 1, at));
const readAt = (plot, at) => { reading = { plot, at: clamp(at) }; showTip(); };
const moves = { ArrowLeft: (at) => at - 1, ArrowRight: (at) => at + 1, PageUp: (at) => at - 15, PageDown: (at) => at + 15, Home: () => 0, End: () => POINTS - 1 };

const onKey = (plot, event) => {
  const at = reading && reading.plot === plot ? reading.at : POINTS - 1;
  if (event.key === 'Escape') closeTip();
  else if (moves[event.key]) readAt(plot, moves[event.key](at));
  else if (!plot.move || !plot.move(event.key)) return;
  event.preventDefault();
};

/*
 * Lets a pointer or keys read the values of a chart. `read` returns [label, points, function that
 * formats a value] for each line. `move(key)`, if given, goes to another chart.
 */
const makeReadable = (node, name, read, move) => {
  const plot = { node, read, move };
  for (const [key, value] of [['role', 'slider'], ['aria-label', name], ['aria-valuemin', String((1 - POINTS) * STEP_S)], ['aria-valuemax', '0'], ['aria-valuenow', '0'], ['aria-valuetext', 'now']])
    node.setAttribute(key, value);
  if (!move) node.tabIndex = 0;
  const point = (event) => {
    const box = node.getBoundingClientRect();
    readAt(plot, Math.round((event.clientX - box.left) / box.width * (POINTS - 1)));
  };
  node.addEventListener('pointermove', point);
  node.addEventListener('pointerdown', point);
  node.addEventListener('pointerleave', () => { if (document.activeElement !== node) closeTip(); });
  node.addEventListener('focus', () => { if (node.matches(':focus-visible')) readAt(plot, POINTS - 1); });
  node.addEventListener('blur', closeTip);
  node.addEventListener('keydown', (event) => onKey(plot, event));
};
document.addEventListener('scroll', () => { if (reading) showTip(); }, { passive: true });

/* ---- the charts on top: [id, height, [[label, series, format, class]]]; no class: no line ---- */

const charts = [
  ['chart-commands', 100, [['commands', 'commands_per_second', perSecond, ''], ['refused', 'refused_per_second', perSecond, ' refused'],
    ['errors from Redis', 'redis_errors_per_second', perSecond, ' redis'], ['from weir', 'errors_per_second', perSecond, ' errors']]],
  ['chart-upstream', 40, [['p99', 'upstream_p99_seconds', duration, ''], ['p50', 'upstream_p50_seconds', duration]]],
  ['chart-latency', 40, [['p99', 'latency_p99_seconds', duration, ''], ['p50', 'latency_p50_seconds', duration]]],
  ['chart-overhead', 40, [['p99', 'overhead_p99_seconds', duration, ''], ['p50', 'overhead_p50_seconds', duration]]],
  ['chart-in-flight', 40, [['in flight', 'in_flight', count, '']]],
  ['chart-delay', 40, [['p99', 'delay_p99_seconds', duration, ''], ['p50', 'delay_p50_seconds', duration], ['delayed', 'delayed_per_second', perSecond],
    ['fair-share wait, p99', 'share_wait_p99_seconds', duration]]],
  ['chart-connections', 40, [['connections', 'connections', count, '']]],
];
for (const [id, high, lists] of charts) {
  const svg = shape('svg', { class: 'chart', viewBox: `0 0 300 ${high}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  if (high === 100) svg.append(shape('path', { class: 'grid', d: 'M0 .5H300M0 50H300M0 99.5H300' }));
  for (const [, , , style] of lists.filter((list) => list.length === 4))
    svg.append(shape('path', { class: 'area' + style }), shape('path', { class: 'line' + style }));
  $(id).append(svg);
  makeReadable($(id), $(id).dataset.name, () => lists.map(([label, name, figure]) => [label, series[name] || [], figure]));
}

const drawCharts = () => {
  for (const [id, high, lists] of charts) {
    const paths = $(id).querySelectorAll('.area, .line'), most = peak(series[lists[0][1]]);
    lists.slice(0, paths.length / 2).forEach(([, name], i) => {
      mark(paths[2 * i], 'd', area(series[name], most, high));
      mark(paths[2 * i + 1], 'd', line(series[name], most, high));
    });
  }
  if (reading) showTip();
};
