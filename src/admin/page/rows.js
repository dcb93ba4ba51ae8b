/*
 * The rows of the tables, cell by cell.
 */

/* ---- limits ---- */

const ranks = ['ok', 'near', 'shadowing', 'delaying', 'refusing'];
const isOfBytes = (l) => l.unit.startsWith('bytes');
const exactBytes = (n) => {
  const unit = [['gb', 2 ** 30], ['mb', 2 ** 20], ['kb', 2 ** 10]].find(([, size]) => n > 0 && n % size === 0);
  return unit ? n / unit[1] + unit[0] : String(n);
};
const describeRate = (l) => (l.amount ? ' ' + l.amount : '') +
  (l.per_second > 0 ? ' burst ' + (isOfBytes(l) ? exactBytes(l.burst) : l.burst) : '') + ', per ' + l.scope + ', ' + l.over;
const describe = (l) => l.unit + (l.over === 'deny' ? ' denied' : describeRate(l)) + (l.mode === 'shadow' && l.over !== 'shadow' ? ', shadow' : '') +
  (l.own ? '; ' + l.own : '');

const buildLimit = (row) => {
  const [name, , passing, , chart, use] = row.cells, key = row.node.dataset.key;
  row.who = make('details');
  row.who.append(make('summary'), make('p', 'sub'), make('ul', 'holders'));
  row.who.firstChild.append(make('span', 'name', key), make('span', 'sub'));
  name.append(row.who);
  row.cells[1].append(make('span', 'state'));
  passing.append(document.createTextNode(''), make('span', 'sub'));
  const svg = shape('svg', { class: 'chart spark', viewBox: '0 0 300 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  svg.append(shape('path', { class: 'rate' }), shape('path', { class: 'line' }), shape('path', { class: 'line refused' }));
  const plot = make('div', 'plot');
  plot.append(svg);
  chart.append(plot);
  makeReadable(plot, key, () => {
    const { allowed, over } = tracks.get(key) || { allowed: [], over: [] };
    return [['passing', allowed, row.figure], ['over', over, row.figure]];
  }, (press) => {
    const rows = [...row.node.parentNode.rows], at = rows.indexOf(row.node);
    const next = { ArrowUp: rows[at - 1], ArrowDown: rows[at + 1] }[press];
    if (next) next.querySelector('.plot').focus();
    return next;
  });
  use.className = 'use';
  const meter = shape('svg', { class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  meter.append(shape('rect', { height: 6 }));
  const sub = make('span', 'sub');
  sub.append(document.createTextNode(''), make('bdi'));
  use.append(meter, sub);
};

const drawLimit = (svg, limit) => {
  const { allowed, over } = tracks.get(limit.rule) || { allowed: [], over: [] };
  const most = Math.max(peak(allowed), peak(over), limit.per_second);
  const [dashed, passed, refused] = svg.children;
  mark(dashed, 'd', limit.per_second > 0 ? `M0 ${height(limit.per_second, most, 28)}H300` : '');
  mark(passed, 'd', line(allowed, most, 28));
  mark(refused, 'd', line(over, most, 28));
};

/* Fills the list of heaviest subjects. The list is rebuilt only if it has changed. */
const fillWho = (details, limit) => {
  const n = limit.holders.length;
  write(details.children[1], `${count(limit.subjects)} subject${limit.subjects === 1 ? '' : 's'} in ${limit.policy}` +
    (n > 0 ? '; use and refusals of the heaviest:' : '; no heavy subject uses it'));
  const items = limit.holders.map((holder) => {
    const item = make('li'), refused = holder.refused_per_second;
    item.append(make('bdi', '', holder.subject), make('span', '', holder.used === undefined ? '' : percent(holder.used)),
      make('span', refused > 0 ? 'hot' : 'zero', `${count(refused)} of ${count(Math.max(holder.commands_per_second, refused))}/s`));
    return item;
  });
  const list = details.children[2], shown = [...list.children];
  if (items.length !== shown.length || items.some((item, i) => !item.isEqualNode(shown[i]))) list.replaceChildren(...items);
};

const fillLimit = (row, { limit }) => {
  if (!row.who) buildLimit(row);
  const [, state, passing, over, chart, use] = row.cells;
  const figure = isOfBytes(limit) ? bytes : perSecond;
  row.figure = figure;
  mark(row.node, 'class', limit.state);
  fillWho(row.who, limit);
  write(row.who.firstChild.lastChild, describe(limit));
  write(state.firstChild, limit.state);
  row.values[0] = limit.rule;
  row.values[1] = ranks.indexOf(limit.state);
  write(passing.firstChild, figure(limit.allowed_per_second));
  write(passing.lastChild, limit.per_second > 0 ? 'of ' + limit.amount + (limit.scope === 'policy' ? '' : ' each') : '');
  row.values[2] = limit.allowed_per_second;
  put(row, 3, figure(limit.over_per_second), limit.over_per_second);
  mark(over, 'class', 'n ' + (limit.over_per_second > 0 ? 'over' : 'zero'));
  drawLimit(chart.firstChild.firstChild, limit);
  mark(use.firstChild.firstChild, 'width', String(limit.used * 100));
  write(use.lastChild.firstChild, percent(limit.used) + ' ');
  write(use.lastChild.lastChild, limit.fullest_subject);
  row.values[5] = limit.used;
  putCount(row, 6, limit.allowed);
  putCount(row, 7, limit.delayed, limit.state === 'delaying' && 'warm');
  putCount(row, 8, limit.throttled, limit.state === 'refusing' && 'hot');
  putCount(row, 9, limit.shadow_throttled, limit.state === 'shadowing' && 'warm');
};

/* Sorts by state, refusing limits first. Equal states keep the order of the configuration. */
const byState = (all) => [...all].sort((a, b) => ranks.indexOf(b.state) - ranks.indexOf(a.state));

/* ---- the other tables ---- */

const whatNamed = (l) =>
  l.algorithm + ' ' + l.rates + (l.tz && ', ' + l.tz) + (l.penalty && ', penalty ' + l.penalty) +
  (l.overrides ? ', ' + l.overrides + (l.overrides === 1 ? ' key' : ' keys') + ' with other rates' : '') +
  (l.over === 'shadow' ? ', shadow' : '');

const fillNamed = (row, { named }) => {
  const name = row.cells[0];
  if (!name.firstChild) name.append(make('span', 'name'), make('span', 'sub'));
  write(name.children[0], named.name);
  write(name.children[1], whatNamed(named));
  row.values[0] = named.name;
  [named.passed, named.limited, named.shadow_limited, named.errors].forEach((n, i) => putCount(row, i + 1, n));
  put(row, 5, duration(named.p99_seconds), named.p99_seconds);
};

const fillTop = (by, figure) => (row, { top }) => {
  putWho(row, 0, top.subject);
  put(row, 1, by === 'refused' && top.refused_by || top.policy);
  put(row, 2, figure(top.per_second), top.per_second);
};
const fillClass = (row, { name, results: r }) => {
  put(row, 0, name);
  [r.forwarded, r.throttled, r.delayed, r.shadow, r.local, r.error].forEach((n, i) => putCount(row, i + 1, n));
};
const fillListener = (row, { listener: l }) => {
  put(row, 0, l.listener);
  row.cells[0].className = 'who';
  [l.connected, l.accepted, sum(l.rejected), sum(l.closed)].forEach((n, i) => putCount(row, i + 1, n));
};
const stateOf = ({ state }) => state === 'silent' ? 'does not answer' : state;
const fillNode = (row, { node }) => {
  put(row, 0, node.address);
  row.cells[0].className = 'who';
  put(row, 1, stateOf(node));
  row.cells[1].className = node.up ? 'up' : 'down';
  put(row, 2, node.role);
  put(row, 3, node.use);
  put(row, 4, node.slots ? count(node.slots) + (node.slots_moving ? ', ' + count(node.slots_moving) + ' moving' : '') : '\u2013', node.slots);
  put(row, 5, node.epoch ? String(node.epoch) : '\u2013', node.epoch);
  put(row, 6, 'lag_seconds' in node ? duration(node.lag_seconds) : '\u2013', node.lag_seconds || 0);
  [sum(node.connections), node.in_flight, node.requests, sum(node.errors)].forEach((n, i) => putCount(row, i + 7, n));
  put(row, 11, node.changed_ms ? time(node.changed_ms) : '\u2013', node.changed_ms);
};
const fillEvent = (row, { event }) => {
  put(row, 0, time(event.time_ms), event.id);
  row.cells[1].className = 'kind';
  put(row, 1, event.kind);
  if (!row.cells[2].firstChild) row.cells[2].append(document.createTextNode(''), make('span', 'sub'));
  write(row.cells[2].firstChild, event.text);
  write(row.cells[2].lastChild, event.count > 1 ? `${count(event.count)} times since ${time(event.first_ms)}` : '');
  row.values[2] = event.text;
};

const limits = new Table('limits', fillLimit, 'No limits are configured.');
const tops = [['refused', count], ['commands', count], ['bytes', bytes]].map(
  ([by, figure]) => [by, new Table('top-' + by, fillTop(by, figure), 'No subject at the moment.')]);
const classes = new Table('classes', fillClass, '');
const listeners = new Table('listeners', fillListener, '');
const nodes = new Table('nodes', fillNode, '');
const events = new Table('events', fillEvent, 'Nothing has happened yet.');
const named = new Table('named', fillNamed, 'No limits are named.');
filtered.push(limits, named, ...tops.map(([, table]) => table), events);

/* Makes one Tab stop for all plots. The arrow keys move between the plots. */
const rove = () => {
  const plots = [...limits.body.querySelectorAll('.plot')];
  const stop = plots.find((plot) => plot === document.activeElement) || plots[0];
  for (const plot of plots) mark(plot, 'tabindex', plot === stop ? '0' : '-1');
};
