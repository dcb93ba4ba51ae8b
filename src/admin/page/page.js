/*
 * Keeps the page live: asks for the statistics every two seconds and writes what has changed into the document that
 * the server has made. Whatever came from outside is written as text only.
 */
'use strict';
(() => {
  const POLL_MS = 2000, POINTS = 150, WIDTH = 300, EDGE = 1.5, TOP = 10, LIMITS = 256, EVENTS = 20;
  const $ = (id) => document.getElementById(id);
  const sum = (object) => Object.values(object).reduce((a, b) => a + b, 0);

  /* ---- numbers, as admin/figures.c writes them ---- */

  const count = (n) => Math.round(n).toLocaleString('en-US');
  const short = (x) => x.toFixed(1).replace(/\.0$/, '');
  const rate = (x) => x < 9.95 ? short(x) : x < 9999.5 ? count(x) : x < 999950 ? (x / 1e3).toFixed(1) + 'k' : (x / 1e6).toFixed(2) + 'M';
  const perSecond = (x) => rate(x) + '/s';
  const percent = (x) => (x * 100 < 9.95 ? short(x * 100) : (x * 100).toFixed(0)) + ' %';
  const bytes = (x) => {
    let unit = 0;
    for (; x >= 1023.5 && unit < 3; unit++) x /= 1024;
    return (unit > 0 && x < 9.95 ? short(x) : x.toFixed(0)) + ' ' + ['B', 'KB', 'MB', 'GB'][unit] + '/s';
  };
  const duration = (s) => {
    if (s <= 0) return '\u2013';
    const us = s * 1e6, [value, unit] = us < 999.5 ? [us, '\u00b5s'] : us < 999500 ? [us / 1e3, 'ms'] : [s, 's'];
    return (value < 9.95 ? short(value) : value.toFixed(0)) + ' ' + unit;
  };
  const span = (s) => {
    s = Math.floor(s);
    if (s < 60) return s + ' s';
    if (s < 3600) return Math.floor(s / 60) + ' min ' + s % 60 + ' s';
    if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
    return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
  };
  const two = (n) => String(n).padStart(2, '0');
  const time = (ms) => {
    const t = new Date(ms), clock = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
    const isToday = t.toDateString() === new Date().toDateString();
    return isToday ? clock : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock}`;
  };

  /* ---- writing into the document, and only what has changed ---- */

  const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const mark = (node, name, value) => { if (node.getAttribute(name) !== value) node.setAttribute(name, value); };
  const fields = {};
  for (const node of document.querySelectorAll('[data-f]')) fields[node.dataset.f] = node;
  const show = (name, text) => write(fields[name], text);
  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const shape = (tag, attributes) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    return node;
  };

  /* ---- charts, as admin/chart.c draws them ---- */

  const peak = (points) => Math.max(0, ...points);
  const short4 = (x) => Number(x.toPrecision(4));
  const height = (value, most, high) => short4(EDGE + (1 - (most > 0 ? Math.min(value / most, 1) : 0)) * (high - 2 * EDGE));
  const across = (points, i) => short4((POINTS - points.length + i) * WIDTH / (POINTS - 1));
  const line = (points, most, high) =>
    peak(points) > 0 ? points.map((v, i) => (i ? 'L' : 'M') + across(points, i) + ' ' + height(v, most, high)).join('') : '';
  const draw = (id, lists, high) => {
    const most = peak(lists[0]), paths = $(id).querySelectorAll('.area, .line');
    lists.forEach((points, i) => {
      const d = line(points, most, high);
      mark(paths[2 * i], 'd', d && d + 'V' + high + 'H' + across(points, 0) + 'Z');
      mark(paths[2 * i + 1], 'd', d);
    });
  };

  /* ---- the history: all of it once, then only what is new ---- */

  let last = 0, pid = 0;
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
    last = newest;
  };

  /* ---- tables: a row for each key, kept where it is; order and filter are the reader's ---- */

  class Table {
    constructor(id, fill, none) {
      this.node = $(id);
      this.body = this.node.tBodies[0];
      this.heads = [...this.node.tHead.rows[0].cells];
      this.fill = fill;
      this.none = none;
      this.rows = new Map();
      this.sort = null;
      this.body.replaceChildren();
      this.heads.forEach((head, i) => this.makeSortable(head, i));
    }

    makeSortable(head, i) {
      if (head.classList.contains('plain')) return;
      const button = make('button', '', head.textContent);
      button.type = 'button';
      button.addEventListener('click', () => {
        const isNumber = head.classList.contains('n') || head.classList.contains('use');
        const next = { column: i, down: isNumber };
        if (this.sort && this.sort.column === i) next.down = !this.sort.down;
        const isBack = this.sort && this.sort.column === i && this.sort.down !== isNumber;
        this.sort = isBack ? null : next;
        this.heads.forEach((other) => other.removeAttribute('aria-sort'));
        if (this.sort) head.setAttribute('aria-sort', next.down ? 'descending' : 'ascending');
        this.arrange();
      });
      head.replaceChildren(button);
    }

    update(items) {
      const seen = new Set();
      this.order = items.map(({ key, ...item }) => {
        const row = this.rows.get(key) || this.add(key);
        row.values = [];
        this.fill(row, item);
        seen.add(key);
        return row;
      });
      for (const [key, row] of this.rows) if (!seen.has(key)) { row.node.remove(); this.rows.delete(key); }
      this.arrange();
    }

    add(key) {
      const row = { node: make('tr'), cells: [], values: [] };
      row.node.dataset.key = key;
      this.heads.forEach((head, i) => {
        const isName = i === 0 && this.node.id !== 'events';
        const cell = make(isName ? 'th' : 'td', head.classList.contains('n') ? 'n' : '');
        if (isName) cell.scope = 'row';
        if (head.classList.contains('n')) cell.dataset.l = head.textContent;
        row.cells.push(cell);
        row.node.append(cell);
      });
      this.rows.set(key, row);
      return row;
    }

    arrange() {
      let rows = this.order || [];
      if (this.sort) {
        const { column, down } = this.sort;
        rows = [...rows].sort((a, b) => {
          const x = a.values[column], y = b.values[column];
          return (typeof x === 'number' ? x - y : String(x).localeCompare(String(y))) * (down ? -1 : 1);
        });
      }
      const words = (filtered.includes(this) ? filter.value : '').toLowerCase().split(/\s+/).filter(Boolean);
      const shown = rows.filter((row) => {
        const text = words.length ? row.node.textContent.toLowerCase() : '';
        return words.every((word) => text.includes(word));
      });
      const nodes = shown.length ? shown.map((row) => row.node) : [this.empty(words.length > 0)];
      const isSame = nodes.length === this.body.rows.length && nodes.every((node, i) => node === this.body.rows[i]);
      if (!isSame) this.body.replaceChildren(...nodes);
    }

    empty(isFiltered) {
      this.nothing ||= make('tr');
      if (!this.nothing.firstChild) {
        this.nothing.append(make('td', 'none'));
        this.nothing.firstChild.colSpan = this.heads.length;
      }
      write(this.nothing.firstChild, isFiltered ? 'Nothing here matches the filter.' : this.none);
      return this.nothing;
    }
  }

  const put = (row, i, text, value) => { write(row.cells[i], text); row.values[i] = value === undefined ? text : value; };
  const putCount = (row, i, n, className) => {
    put(row, i, count(n), n);
    mark(row.cells[i], 'class', 'n' + (n === 0 ? ' zero' : className ? ' ' + className : ''));
  };
  const putWho = (row, i, text) => {
    if (!row.cells[i].firstChild) { row.cells[i].className = 'who'; row.cells[i].append(make('bdi')); }
    write(row.cells[i].firstChild, text);
    row.values[i] = text;
  };

  /* ---- limits ---- */

  const ranks = ['ok', 'near', 'shadowing', 'delaying', 'refusing'];
  const isOfBytes = (l) => l.unit.startsWith('bytes');
  const exactBytes = (n) => {
    const unit = [['gb', 2 ** 30], ['mb', 2 ** 20], ['kb', 2 ** 10]].find(([, size]) => n > 0 && n % size === 0);
    return unit ? n / unit[1] + unit[0] : String(n);
  };
  const describe = (l) => l.unit + (l.amount ? ' ' + l.amount : '') +
    (l.per_second > 0 ? ' burst ' + (isOfBytes(l) ? exactBytes(l.burst) : l.burst) : '') +
    ', per ' + l.scope + ', ' + l.over + (l.mode === 'shadow' && l.over !== 'shadow' ? ', shadow' : '');

  const buildLimit = (row) => {
    const [name, state, passing, chart, use] = row.cells;
    passing.append(document.createTextNode(''), make('span', 'sub'));
    name.append(make('span', 'name'), make('span', 'sub'));
    state.append(make('span', 'state'));
    const svg = shape('svg', { class: 'chart spark', viewBox: '0 0 300 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    svg.append(shape('path', { class: 'rate' }), shape('path', { class: 'line' }), shape('path', { class: 'line refused' }));
    chart.append(svg);
    use.className = 'use';
    const meter = shape('svg', { class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    meter.append(shape('rect', { height: 6 }));
    const sub = make('span', 'sub');
    sub.append(document.createTextNode(''), make('bdi'));
    use.append(meter, sub);
    row.isBuilt = true;
  };

  const drawLimit = (svg, limit) => {
    const { allowed, over } = tracks.get(limit.rule) || { allowed: [], over: [] };
    const most = Math.max(peak(allowed), peak(over), limit.per_second);
    const [dashed, passed, refused] = svg.children;
    mark(dashed, 'd', limit.per_second > 0 ? `M0 ${height(limit.per_second, most, 28)}H300` : '');
    mark(passed, 'd', line(allowed, most, 28));
    mark(refused, 'd', line(over, most, 28));
  };

  const fillLimit = (row, { limit }) => {
    if (!row.isBuilt) buildLimit(row);
    const [name, state, passing, chart, use] = row.cells;
    mark(row.node, 'class', limit.state);
    write(name.children[0], limit.rule);
    write(name.children[1], describe(limit));
    write(state.firstChild, limit.state);
    row.values[0] = limit.rule;
    row.values[1] = ranks.indexOf(limit.state);
    const figure = isOfBytes(limit) ? bytes : perSecond;
    write(passing.firstChild, figure(limit.allowed_per_second));
    write(passing.lastChild, limit.per_second > 0 ? 'of ' + limit.amount + (limit.scope === 'policy' ? '' : ' each') : '');
    row.values[2] = limit.allowed_per_second;
    drawLimit(chart.firstChild, limit);
    mark(use.firstChild.firstChild, 'width', String(limit.used * 100));
    write(use.lastChild.firstChild, percent(limit.used) + ' ');
    write(use.lastChild.lastChild, limit.fullest_subject);
    row.values[4] = limit.used;
    putCount(row, 5, limit.allowed);
    putCount(row, 6, limit.delayed, limit.state === 'delaying' && 'warm');
    putCount(row, 7, limit.throttled, limit.state === 'refusing' && 'hot');
    putCount(row, 8, limit.shadow_throttled, limit.state === 'shadowing' && 'warm');
    putCount(row, 9, limit.subjects);
  };

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

  const fillTop = (figure) => (row, { top }) => {
    putWho(row, 0, top.subject);
    put(row, 1, top.policy);
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
  const fillNode = (row, { node }) => {
    put(row, 0, node.address);
    row.cells[0].className = 'who';
    put(row, 1, node.state);
    row.cells[1].className = node.up ? 'up' : 'down';
    [sum(node.connections), node.in_flight, node.connects, sum(node.errors)].forEach((n, i) => putCount(row, i + 2, n));
  };
  const fillEvent = (row, { event }) => {
    put(row, 0, time(event.time_ms), event.id);
    row.cells[1].className = 'kind';
    put(row, 1, event.kind);
    put(row, 2, event.text);
  };

  const filter = $('filter');
  const limits = new Table('limits', fillLimit, 'No limits are configured.');
  const tops = [['commands', count], ['refused', count], ['bytes', bytes]].map(
    ([by, figure]) => [by, new Table('top-' + by, fillTop(figure), 'Nobody at the moment.')]);
  const classes = new Table('classes', fillClass, '');
  const listeners = new Table('listeners', fillListener, '');
  const nodes = new Table('nodes', fillNode, '');
  const events = new Table('events', fillEvent, 'Nothing has happened yet.');
  const named = new Table('named', fillNamed, 'No limits are named.');
  const filtered = [limits, named, ...tops.map(([, table]) => table), events];

  /* ---- everything else ---- */

  const showHeader = (s) => {
    const mode = s.draining ? 'draining' : s.mode, reloads = s.reloads;
    show('mode', mode);
    mark($('mode'), 'class', 'badge ' + mode);
    show('version', s.version);
    show('uptime', span(s.uptime_seconds));
    show('pid', String(s.pid));
    show('config', s.config_file || 'none');
    show('reload', reloads.last_successful ? (reloads.success ? 'OK, ' : 'none since ') + time(reloads.last_success_ms) : 'failed');
    show('workers', String(s.workers));
    show('subjects', count(s.subjects.of_connections + s.subjects.of_keys));
    const alerts = [];
    if (!s.ready) alerts.push('Not ready: ' + s.not_ready_because);
    if (s.subjects.overflowed) alerts.push('All max-subjects places are taken: newcomers share one subject.');
    if (!reloads.last_successful) alerts.push('The last reload failed, what ran before goes on: ' + reloads.last_error);
    const shown = [...$('alerts').children].map((node) => node.textContent);
    if (shown.join('\n') !== alerts.join('\n')) $('alerts').replaceChildren(...alerts.map((text) => make('li', '', text)));
  };

  const showRates = (now) => {
    show('commands', rate(now.commands_per_second));
    show('refused', rate(now.refused_per_second));
    show('refused-share', `(${percent(now.commands_per_second > 0 ? now.refused_per_second / now.commands_per_second : 0)})`);
    show('delayed', rate(now.delayed_per_second));
    show('shadowed', rate(now.shadowed_per_second));
    show('commands-peak', perSecond(peak(series.commands_per_second)));
    show('bytes-in', bytes(now.bytes_in_per_second));
    show('bytes-out', bytes(now.bytes_out_per_second));
    draw('chart-commands', [series.commands_per_second, series.refused_per_second], 100);
    draw('chart-connections', [series.connections], 40);
    draw('chart-latency', [series.latency_p99_seconds], 40);
    draw('chart-overhead', [series.overhead_p99_seconds], 40);
    for (const name of ['latency-p50', 'latency-p99', 'overhead-p50', 'overhead-p99'])
      show(name, duration(now[name.replace('-', '_') + '_seconds']));
    show('turn-p99', duration(now.loop_turn_p99_seconds));
  };

  const showConnections = ({ clients, upstream, lanes }) => {
    show('connections', count(clients.listeners.reduce((n, l) => n + l.connected, 0)));
    show('max-clients', count(clients.max));
    show('turned-away', count(clients.listeners.reduce((n, l) => n + sum(l.rejected), 0)));
    show('upstream', upstream.state);
    mark($('upstream'), 'class', upstream.up ? 'up' : 'down');
    show('upstream-address', upstream.address);
    show('in-flight', count(upstream.in_flight));
    show('oldest', duration(upstream.oldest_seconds));
    show('upstream-errors', count(sum(upstream.errors)));
    show('lanes', count(sum(upstream.connections)));
    show('lanes-mode', lanes === 'private' ? 'private to each client' : 'shared by clients');
    Object.values(upstream.connections).forEach((n, i) => write($('lanes').children[i].lastElementChild, count(n)));
  };

  const showTables = (s) => {
    $('nodes-card').hidden = s.upstream.nodes.length < 2;
    nodes.update(s.upstream.nodes.map((node) => ({ key: node.address, node })));
    limits.update(s.limits.slice(0, LIMITS).map((limit) => ({ key: limit.rule, limit })));
    named.update(s.named_limits.slice(0, LIMITS).map((one) => ({ key: one.name, named: one })));
    for (const [by, table] of tops)
      table.update(s.top[by].filter((top) => top.per_second > 0).slice(0, TOP).map((top) => ({ key: JSON.stringify([top.subject, top.policy]), top })));
    classes.update(Object.entries(s.commands).map(([name, results]) => ({ key: name, name, results })));
    listeners.update(s.clients.listeners.map((listener) => ({ key: listener.listener, listener })));
    events.update(s.events.slice(0, EVENTS).map((event) => ({ key: String(event.id), event })));
  };

  /* ---- asking ---- */

  let isPaused = false, timer = 0, turn = 0; /* an answer to an earlier turn comes too late */
  const say = (text, state) => {
    show('live', text);
    mark(fields.live, 'class', 'live ' + state);
  };

  const ask = async () => {
    const answer = await fetch('/api/v1/stats?history=' + last, { cache: 'no-store', signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  };

  const poll = async () => {
    const mine = ++turn;
    clearTimeout(timer);
    try {
      let stats = await ask();
      if (mine === turn && (stats.pid !== pid || stats.history.last < last)) { /* another weir, from its first point on */
        forget();
        if (pid !== 0) stats = await ask();
        pid = stats.pid;
      }
      if (isPaused || mine !== turn) return;
      remember(stats);
      showHeader(stats);
      showRates(stats.now);
      showConnections(stats);
      showTables(stats);
      say('live', 'on');
    } catch (error) {
      if (isPaused || mine !== turn) return;
      say('weir does not answer', 'lost');
    }
    if (!isPaused && !document.hidden) timer = setTimeout(poll, POLL_MS);
  };

  const pause = $('pause');
  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', String(isPaused));
    write(pause, isPaused ? 'Resume' : 'Pause');
    clearTimeout(timer);
    if (isPaused) say('paused at ' + time(Date.now()), '');
    else poll();
  });
  filter.addEventListener('input', () => filtered.forEach((table) => table.arrange()));
  document.addEventListener('visibilitychange', () => { if (!document.hidden && !isPaused) poll(); });
  pause.hidden = filter.hidden = false;
  poll();
})();
