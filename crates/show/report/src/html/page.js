// Figures under the pointer. A chart carries those of its lines: {at: [[left, x], ...], lines: [{ink, x, y, points: [[index in at, top,
// y], ...]}, ...]}, and those of its cells: {across: [[left, right, x], ...], down: [[top, bottom, y], ...], values: [...], cells: [[index in
// across, in down, in values], ...]}.
(() => {
  "use strict";
  // Pixels of the drawing between the pointer and the nearest point, at most; points of one instant lie this close together.
  const [NEAR, SAME] = [40, 2];
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  function hide() {
    tip.hidden = true;
    document.querySelectorAll(".tip-mark").forEach((mark) => mark.remove());
  }

  function place(left, top) {
    tip.hidden = false;
    const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${scrollX + Math.max(4, Math.min(left + 14, most))}px`;
    tip.style.top = `${scrollY + Math.max(4, top - tip.offsetHeight - 12)}px`;
  }

  function line(text, ink) {
    const row = document.createElement("div");
    if (ink) {
      const mark = document.createElement("i");
      mark.style.background = `var(${ink})`;
      row.append(mark);
    }
    row.append(text);
    return row;
  }

  function nameOf(svg, ink, otherwise) {
    const entries = [...(svg.closest("figure")?.querySelectorAll(".legend li") ?? [])];
    const entry = entries.find((entry) => entry.firstChild.style.getPropertyValue("--c") === `var(${ink})`);
    return entry?.textContent ?? otherwise;
  }

  function mark(svg, shape, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", shape);
    Object.entries({ class: "tip-mark", ...attributes }).forEach(([name, value]) => element.setAttribute(name, value));
    svg.append(element);
  }

  // The pointer and the arrow keys lead to a chart's figures.
  function follow(svg, seek, step) {
    svg.addEventListener("pointermove", seek);
    svg.addEventListener("pointerdown", seek);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.tabIndex = 0;
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      else if (step(event.key)) event.preventDefault();
    });
  }

  function show(svg, all, at) {
    const [box, wide] = [svg.getBoundingClientRect(), svg.viewBox.baseVal.width];
    const nearest = (points, to) => points.reduce((a, b) => (Math.abs(b[0] - to) < Math.abs(a[0] - to) ? b : a));
    const found = nearest(all.map(({ points }) => nearest(points, at)), at);
    hide();
    if (Math.abs(found[0] - at) > NEAR) return;
    const rows = all
      .map((series) => ({ ...series, point: nearest(series.points, found[0]) }))
      .filter(({ point }) => Math.abs(point[0] - found[0]) <= SAME);
    tip.replaceChildren(line(`${rows[0].x} ${found[2]}`.trim()));
    for (const { ink, y, point } of rows) {
      tip.append(line(`${nameOf(svg, ink, y)}: ${point[3]}`, ink));
      mark(svg, "circle", { cx: point[0], cy: point[1], r: 5, stroke: `var(${ink})` });
    }
    const scale = box.width / wide;
    place(box.left + found[0] * scale, box.top + Math.min(...rows.map(({ point }) => point[1])) * scale);
    return found[0];
  }

  for (const svg of document.querySelectorAll("svg[data-points]")) {
    const { at: places, lines } = JSON.parse(svg.dataset.points);
    const written = (x) => (typeof x === "number" ? `${new Date(x * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC` : x);
    // [left, top, x text, y text]
    const whole = ([index, top, y]) => [places[index][0], top, written(places[index][1]), y];
    const all = lines.map((series) => ({ ...series, points: series.points.map(whole) }));
    const across = [...new Set(all.flatMap(({ points }) => points.map(([left]) => left)))].sort((a, b) => a - b);
    let at = -1;
    const seek = ({ clientX }) => {
      const box = svg.getBoundingClientRect();
      at = across.indexOf(show(svg, all, ((clientX - box.left) / box.width) * svg.viewBox.baseVal.width));
    };
    follow(svg, seek, (key) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (!step) return false;
      at = Math.max(0, Math.min(across.length - 1, at + step));
      show(svg, all, across[at]);
      return true;
    });
  }

  function showCell(svg, { column, row, value, left, right, top, bottom }) {
    hide();
    tip.replaceChildren(line(value), line(row), line(column));
    mark(svg, "rect", { x: left, y: top, width: right - left, height: bottom - top, stroke: "var(--text)" });
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    place(box.left + ((left + right) / 2) * scale, box.top + top * scale);
  }

  for (const svg of document.querySelectorAll("svg[data-cells]")) {
    const { across, down, values, cells } = JSON.parse(svg.dataset.cells);
    const all = cells.map(([x, y, value]) => {
      const [[left, right, column], [top, bottom, row]] = [across[x], down[y]];
      return { column, row, value: values[value], left, right, top, bottom, x: (left + right) / 2, y: (top + bottom) / 2 };
    });
    const away = (cell, x, y) => Math.hypot(cell.x - x, cell.y - y);
    let at = null;
    const show = (found) => {
      at = found;
      if (at) showCell(svg, at);
      else hide();
    };
    const seek = ({ clientX, clientY }) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(clientX - box.left) * scale, (clientY - box.top) * scale];
      const under = all.filter(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom);
      show(under.reduce((a, b) => (a && away(a, x, y) <= away(b, x, y) ? a : b), null));
    };
    follow(svg, seek, (key) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
      if (!step) return false;
      // The nearest one in that direction; what lies aside counts twice.
      const ahead = ({ x, y }) => (x - at.x) * step[0] + (y - at.y) * step[1];
      const far = (cell) => ahead(cell) + 2 * Math.abs((cell.x - at.x) * step[1] + (cell.y - at.y) * step[0]);
      const nearest = (a, b) => (a && far(a) <= far(b) ? a : b);
      const found = at ? all.filter((cell) => ahead(cell) > 0.01).reduce(nearest, null) : all[0];
      if (found) show(found);
      return true;
    });
  }

  // A path that is shortened is shown whole where it is tapped.
  document.addEventListener("pointerdown", (event) => {
    const path = event.target.closest?.(".path");
    if (!path) return event.target.closest?.("svg[data-points], svg[data-cells]") ? undefined : hide();
    const box = path.getBoundingClientRect();
    tip.replaceChildren(line(path.title));
    place(box.left, box.top);
  });
})();
