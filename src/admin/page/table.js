/*
 * Tables. Each key has one row, which updates reuse. The user of the page chooses order and filter.
 */

const filter = $('filter'), filtered = [];

class Table {
  constructor(id, fill, none) {
    this.node = $(id);
    this.body = this.node.tBodies[0];
    this.heads = [...this.node.tHead.rows[0].cells];
    this.fill = fill;
    this.none = none;
    this.rows = new Map();
    this.sort = null;
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
    if (isSame) return;
    const held = this.body.contains(document.activeElement) ? document.activeElement : null;
    this.body.replaceChildren(...nodes);
    if (held && held.isConnected) held.focus({ preventScroll: true });
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
