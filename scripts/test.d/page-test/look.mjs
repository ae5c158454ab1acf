// What a reader sees of a page, asked of the page itself: `look` runs in the browser and returns, for each
// question, what is wrong. Nothing wrong is an empty list.

export function look() {
  const wrong = { overflow: [], tables: [], charts: [], labels: [], overlaps: [], contrast: [] };
  const round = (value) => Math.round(value * 10) / 10;
  const isSeen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const widest = [...document.body.querySelectorAll("*")]
      .filter((element) => isSeen(element) && !element.closest(".scroll") && !element.closest("svg"))
      .sort((a, b) => b.getBoundingClientRect().right - a.getBoundingClientRect().right)[0];
    wrong.overflow.push(`the page is ${root.scrollWidth} px wide, the window ${root.clientWidth} px; widest: ` +
      `<${widest?.localName} class="${widest?.className}">`);
  }

  // A table may scroll on a phone; a wide window and paper show it whole.
  for (const table of document.querySelectorAll(".scroll")) {
    if (table.scrollWidth > table.clientWidth) {
      wrong.tables.push(`a table of ${table.scrollWidth} px stands in ${table.clientWidth} px`);
    }
  }

  // Charts: one of the two drawings of each figure is seen, at a size that can be read.
  for (const figure of document.querySelectorAll("figure")) {
    const name = figure.querySelector("figcaption b")?.textContent ?? "a figure without a title";
    const seen = [...figure.querySelectorAll("svg")].filter(isSeen);
    if (seen.length !== 1) {
      wrong.charts.push(`${name}: ${seen.length} drawings are seen instead of one`);
    }
    for (const svg of seen) {
      const box = svg.getBoundingClientRect();
      const inside = figure.getBoundingClientRect().width;
      // Several over one axis.
      const panels = Number(svg.dataset.panels ?? 1);
      if (box.width < 0.85 * inside || box.height < 180 || box.height / panels > box.width) {
        wrong.charts.push(`${name}: ${round(box.width)} x ${round(box.height)} px in ${round(inside)} px`);
      }
      const drawn = svg.viewBox.baseVal.width;
      const smallest = Math.min(...[...svg.querySelectorAll("text")].map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * box.width / drawn));
      if (smallest < 9) {
        wrong.charts.push(`${name}: text of ${round(smallest)} px`);
      }
    }
  }

  const seenTexts = (svg) => [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
  for (const svg of [...document.querySelectorAll("svg")].filter(isSeen)) {
    const frame = svg.getBoundingClientRect();
    const boxes = seenTexts(svg).map((text) => ({ name: text.textContent.trim(), box: text.getBoundingClientRect() }));
    for (const { name, box } of boxes) {
      const out = Math.max(frame.left - box.left, frame.top - box.top, box.right - frame.right, box.bottom - frame.bottom);
      if (out > 0.5) {
        wrong.labels.push(`“${name}” stands ${round(out)} px outside its chart`);
      }
    }
    boxes.forEach((a, at) => boxes.slice(at + 1).forEach((b) => {
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (across > 0.5 && down > 0.5) {
        wrong.overlaps.push(`“${a.name}” and “${b.name}” overlap by ${round(across)} x ${round(down)} px`);
      }
    }));
  }

  // Contrast by WCAG 2: of every text against what lies behind it.
  const parse = (color) => {
    const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
  };
  const over = (top, share, below) => below.map((value, at) => top[at] * share + value * (1 - share));
  const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(parse(getComputedStyle(at).backgroundColor));
    }
    // Paper and an unstyled window are white.
    return layers.reduceRight((below, layer) => over(layer.rgb, layer.alpha, below), [255, 255, 255]);
  };
  const ask = (name, color, below, style) => {
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const least = isLarge ? 3 : 4.5;
    const ratio = contrast(over(color.rgb, color.alpha, below), below);
    if (ratio < least) {
      wrong.contrast.push(`“${name.slice(0, 40)}” has ${round(ratio)} : 1 instead of ${least} : 1`);
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.textContent.trim() && !parent.closest("svg") && isSeen(parent)) {
      const style = getComputedStyle(parent);
      ask(node.textContent.trim(), parse(style.color), behind(parent), style);
    }
  }
  for (const svg of [...document.querySelectorAll("svg")].filter(isSeen)) {
    for (const text of seenTexts(svg)) {
      const style = getComputedStyle(text);
      const box = text.getBoundingClientRect();
      const surfaces = [...svg.querySelectorAll("rect, circle, polygon")].filter((surface) =>
        getComputedStyle(surface).fill !== "none" &&
        surface.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING);
      // A label may lie half on a band: its worst part counts.
      for (const part of [0.02, 0.5, 0.98]) {
        const [x, y] = [box.left + box.width * part, box.top + box.height / 2];
        const below = surfaces.reduce((below, surface) => {
          const under = surface.getBoundingClientRect();
          const hit = under.left <= x && x <= under.right && under.top <= y && y <= under.bottom;
          const look = getComputedStyle(surface);
          const fill = hit ? parse(look.fill) : null;
          return hit ? over(fill.rgb, fill.alpha * Number(look.fillOpacity) * Number(look.opacity), below) : below;
        }, behind(svg));
        const fill = parse(style.fill);
        ask(text.textContent.trim(), { ...fill, alpha: fill.alpha * Number(style.fillOpacity) }, below, style);
      }
    }
  }
  wrong.contrast = [...new Set(wrong.contrast)];
  return wrong;
}

/// What must be read without scrolling and is not: the answer, and the three figures of a check.
export function belowTheFold(isCheck) {
  const wanted = [...document.querySelectorAll("h1, .banner .sentence, .figure .value")];
  const below = wanted.filter((element) => {
    const box = element.getBoundingClientRect();
    return box.height === 0 || box.top < 0 || box.bottom > innerHeight;
  });
  const missing = document.querySelectorAll("h1").length === 1 ? [] : ["there is not one heading but " +
    document.querySelectorAll("h1").length];
  if (isCheck && document.querySelectorAll(".figure .value").length !== 3) {
    missing.push("a check does not show its three figures");
  }
  return missing.concat(below.map((element) => `“${element.textContent}” is not in the first window`));
}

/// What is dark on paper: the ground that ink would be wasted on.
export function darkGrounds() {
  const grounds = [document.documentElement, document.body, ...document.querySelectorAll(".card, table, figure")];
  const dark = grounds.filter((element) => {
    const [red, green, blue, alpha = 1] = getComputedStyle(element).backgroundColor.match(/[\d.]+/g).map(Number);
    return alpha > 0.1 && Math.min(red, green, blue) < 200;
  });
  return dark.map((element) => `<${element.localName} class="${element.className}"> is dark on paper`);
}
