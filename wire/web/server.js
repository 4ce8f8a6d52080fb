// Refreshes the page about the server every two seconds and draws the charts. The page is complete without it.
(() => {
  'use strict';
  const PERIOD_MS = 2000;
  const POINTS = 150; // of a chart: five minutes
  const FIRST_POINTS = 15; // a new chart is half a minute wide
  const WIDTH = 240;
  const HEIGHT = 60;
  const columns = { turns: ['kind', 'max', 'mean', 'count'], bounds: ['of', 'used', 'limit', 'hits'] };
  const source = document.querySelector('[data-source]').dataset.source;
  const stopped = document.querySelector('[data-stopped]');
  const history = new Map();

  function draw(figure, value) {
    const points = history.get(value.key) || [];
    points.push(value.drawn);
    if (points.length > POINTS) points.shift();
    history.set(value.key, points);
    const top = Math.max(...points) || 1;
    const span = Math.max(points.length, FIRST_POINTS); // a new page has few points
    const line = points.map((y, i) =>
      `${(WIDTH * (span - points.length + i) / (span - 1)).toFixed(1)},${(HEIGHT - 1 - (HEIGHT - 2) * y / top).toFixed(1)}`);
    figure.querySelector('polyline').setAttribute('points', line.join(' '));
    figure.querySelector('strong').textContent = value.rate ? `${value.rate}/s` : value.text;
  }

  function fill(body, rows, names) {
    body.replaceChildren(...rows.map((row) => {
      const tr = document.createElement('tr');
      names.forEach((name, i) => {
        const cell = document.createElement(i ? 'td' : 'th');
        if (!i) cell.scope = 'row';
        cell.textContent = row[name];
        tr.append(cell);
      });
      return tr;
    }));
  }

  function show(status) {
    for (const cell of document.querySelectorAll('[data-field]')) cell.textContent = status[cell.dataset.field];
    for (const value of status.values) {
      const cells = document.querySelector(`[data-value="${value.key}"]`).cells;
      cells[1].textContent = value.text;
      cells[2].textContent = value.rate;
      const figure = document.querySelector(`[data-chart="${value.key}"]`);
      if (figure) draw(figure, value);
    }
    for (const body of document.querySelectorAll('[data-rows]')) {
      fill(body, status[body.dataset.rows] || [], columns[body.dataset.rows]);
    }
    document.querySelector('[data-charts]').hidden = false;
  }

  async function refresh() {
    try {
      const answer = await fetch(source, { cache: 'no-store' });
      if (answer.status === 401 || answer.status === 403) return location.reload(); // the page says why
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
      stopped.hidden = true;
    } catch {
      stopped.hidden = false;
    }
    setTimeout(refresh, PERIOD_MS);
  }
  refresh();
})();
