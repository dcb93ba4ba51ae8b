/*
 * Formats numbers, and writes changed values into the document. All data is written as text, never
 * as markup. The files of this folder form one script: figures, charts, table, rows, page.
 */
'use strict';

const $ = (id) => document.getElementById(id);
const sum = (object) => Object.values(object).reduce((a, b) => a + b, 0);

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
const clock = (ms) => {
  const t = new Date(ms);
  return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
};
const time = (ms) => {
  const t = new Date(ms), isToday = t.toDateString() === new Date().toDateString();
  return isToday ? clock(ms) : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock(ms)}`;
};

/* Shows control characters in clients' text as visible replacement characters. */
const plain = (text) => text.replace(/[\0-\x1f\x7f]/g, '\ufffd');
const write = (node, text) => { text = plain(text); if (node.textContent !== text) node.textContent = text; };
const mark = (node, name, value) => { if (node.getAttribute(name) !== value) node.setAttribute(name, value); };
const fields = {};
for (const node of document.querySelectorAll('[data-f]')) fields[node.dataset.f] = node;
const show = (name, text) => write(fields[name], text);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = plain(text);
  return node;
};
const shape = (tag, attributes) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  return node;
};
