// A log-log chart that is redrawn while its slider moves; the value reaches the server on release.
// The formulas are not written here: they arrive as source that the library printed from its own expressions.
const LEFT = 56, RIGHT = 26, TOP = 26, FOOT = 42, LANE = 20, STEPS = 96;
const PREFIXES = [..."PTGMk mµnpf"].map((letter, i) => [10 ** (15 - 3 * i), letter.trim()]);
const si = (value, unit = "", digits = 4) => {
  const [scale, letter] = PREFIXES.find(([s]) => Math.abs(value) >= s * 0.9999) || [1, ""];
  return Number((value / scale).toPrecision(digits)) + (unit && " ") + letter + unit;
};
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const units = (value, unit) => (unit && " ") + (value === 1 ? unit.replace(/s$/, "") : unit);
const count = (value) => value >= 1000 ? whole.format(value) : String(Number(value.toPrecision(4)));

function svg(parent, name, attributes, text, space = "http://www.w3.org/2000/svg") {
  const made = parent.appendChild(document.createElementNS(space, name));
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}
const html = (parent, name, text, attributes = {}) => svg(parent, name, attributes, text, "http://www.w3.org/1999/xhtml");
// Colours of the theme by number; a negative number is the colour of text.
const ink = (tint, what = "stroke") => `${what}:var(${tint < 0 ? "--st-text-color" : "--tint" + tint})`;
// A formula as a function of its free quantities; the others keep their values.
const compiled = ({ names, source, values }) => {
  const call = new Function(...names, "return " + source), held = names.map((name) => values[name]);
  const open = names.filter((name) => !(name in values)).map((name) => [name, names.indexOf(name)]);
  return (free) => { for (const [name, at] of open) held[at] = free[name]; return call(...held); };
};

function layout(data, width) {
  const [x0, x1] = data.x.domain, [y0, y1] = data.y.domain, height = width < 560 ? 290 : 340;
  const right = width - RIGHT, bottom = TOP + height, floor = bottom + LANE * data.lanes.filter((l) => l.items.length).length;
  return {
    width, right, bottom, floor, height: floor + FOOT,
    px: (x) => LEFT + (right - LEFT) * Math.log(x / x0) / Math.log(x1 / x0),
    py: (y) => bottom - height * Math.log(y / y0) / Math.log(y1 / y0),
    back: (p) => x0 * Math.pow(x1 / x0, (p - LEFT) / (right - LEFT)),
    at: Array.from({ length: STEPS + 1 }, (_, i) => x0 * Math.pow(x1 / x0, i / STEPS)),
  };
}

// Finds free room for a text near a place, above it first or below; `taken` holds the boxes in use.  Where there is
// none, a text that is said elsewhere too (`spare`) is left out, rather than stand by something else.
function write(group, box, taken, x, y, text, gap, below, spare) {
  const wide = 6.6 * text.length + 2, after = x + gap, before = x - gap - wide;
  const left = after + wide <= box.right ? after : before >= LEFT ? before : box.right - wide;
  const free = (top) => top > TOP - 4 && top + 14 < box.bottom
    && taken.every((t) => left + wide < t[0] || left > t[1] || top + 14 < t[2] || top > t[2] + 14);
  const down = spare ? [3] : [3, 18, 33, 48, 63], up = down.map((dy) => -14 - dy);
  const order = below ? [...down, ...up] : down.flatMap((dy, i) => [up[i], dy]);
  const room = order.map((dy) => y + dy).find(free), top = room ?? y - 17;
  if (spare && room === undefined) return;
  taken.push([left, left + wide, top]);
  const line = { class: "leader", x1: x, y1: y, x2: left < x ? left + wide : left - 1, y2: top + 7 };
  if (Math.abs(top + 7 - y) > 20) svg(group, "line", line);
  svg(group, "text", { x: left, y: top + 11, class: "said" }, text);
}

function dot(group, box, taken, { x, y, label, tint }, below = false) {
  svg(group, "circle", { class: "mark", cx: box.px(x), cy: box.py(y), r: 5, style: ink(tint, "fill") });
  if (label) write(group, box, taken, box.px(x), box.py(y), label, 9, below);
}

function axes(group, data, box) {
  const octave = Math.abs(box.px(2) - box.px(1)), every = Math.max(1, Math.ceil(58 / octave));
  for (let k = Math.ceil(Math.log2(data.x.domain[0]) - 1e-9); 2 ** k <= data.x.domain[1] * 1.0001; k++) {
    svg(group, "line", { class: "grid", x1: box.px(2 ** k), x2: box.px(2 ** k), y1: TOP, y2: box.floor });
    if (k % every === 0) svg(group, "text", { x: box.px(2 ** k), y: box.floor + 16, "text-anchor": "middle" }, count(2 ** k));
  }
  const [y0, y1] = data.y.domain, steps = y1 / y0 > 1e3 ? [1] : [1, 2, 5], low = Math.floor(Math.log10(y0));
  const decades = Array.from({ length: Math.floor(Math.log10(y1)) - low + 1 }, (_, i) => 10 ** (low + i));
  for (const y of decades.flatMap((ten) => steps.map((s) => s * ten)).filter((v) => v >= y0 && v <= y1)) {
    svg(group, "line", { class: "grid", x1: LEFT, x2: box.right, y1: box.py(y), y2: box.py(y) });
    svg(group, "text", { x: LEFT - 6, y: box.py(y) + 4, "text-anchor": "end" }, si(y));
  }
  svg(group, "text", { x: 2, y: 14 }, data.y.label);
  svg(group, "text", { x: box.right, y: box.floor + 34, "text-anchor": "end" }, data.x.label);
}

function lanes(group, data, box) {
  data.lanes.filter((lane) => lane.items.length).forEach((lane, row) => {
    const y = box.bottom + LANE * (row + 0.5), taken = lane.items.map((item) => [box.px(item.at) - 6, box.px(item.at) + 6]);
    svg(group, "line", { class: "grid", x1: LEFT, x2: box.right, y1: y - LANE / 2, y2: y - LANE / 2 });
    svg(group, "text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, lane.letter);
    for (const item of lane.items) {
      const x = box.px(item.at), mark = svg(group, "g", {}), style = ink(item.tint) + ";" + ink(item.tint, "fill");
      svg(mark, "title", {}, `${lane.label}; ${lane.source}`);
      if (item.from) svg(mark, "line", { class: "span", x1: box.px(item.from), x2: x, y1: y, y2: y, style });
      svg(mark, "circle", { class: item.open ? "open" : "mark", cx: x, cy: y, r: 5, style });
      const wide = 6.2 * item.text.length, clear = (l) => taken.every(([a, b]) => l > b || l + wide < a);
      const left = [x + 9, x - 9 - wide].find((l) => l > LEFT && l + wide < box.width && clear(l));
      if (left === undefined) continue;
      taken.push([left, left + wide]);
      svg(mark, "text", { x: left, y: y + 4, class: "small" }, item.text);
    }
  });
}

// What does not move: axes, levels, marked points, what others say.
function still(group, data, box) {
  const taken = [];
  axes(group, data, box);
  lanes(group, data, box);
  for (const { y, dash } of data.levels) {
    svg(group, "line", { class: "level", x1: LEFT, x2: box.right, y1: box.py(y), y2: box.py(y), "stroke-dasharray": dash });
  }
  for (const point of data.points) dot(group, box, taken, point, true);
  return taken;
}

function crossings(first, second, at) {
  const found = [], gap = (x) => { const g = Math.log(first(x) / second(x)); return Math.abs(g) < 1e-12 ? 0 : g; };
  const gaps = at.map(gap);
  for (let i = 1; i < at.length; i++) {
    let low = at[i - 1], high = at[i], before = gaps[i - 1];
    if (before === 0 || before * gaps[i] > 0) continue;
    for (let k = 0; k < 60; k++) {
      const middle = Math.sqrt(low * high);
      [low, high] = before * gap(middle) <= 0 ? [low, middle] : [middle, high];
    }
    found.push(high);
  }
  return found;
}

// What follows the slider; returns what there is to say of it.
function moving(group, data, box, curves, value, fixed) {
  group.replaceChildren();
  const taken = [...fixed], onAxis = data.slider.name === data.x.name, unit = " " + data.x.unit;
  const width = box.right - LEFT, height = box.bottom - TOP;
  const view = svg(group, "svg", { x: LEFT, y: TOP, width, height, viewBox: `${LEFT} ${TOP} ${width} ${height}` });
  const shaded = value === data.slider.value ? data.windows : [];  // known for the value at rest only
  for (const { low, high } of shaded) {
    svg(view, "rect", { class: "window", x: box.px(low), width: box.px(high) - box.px(low), y: TOP, height });
  }
  const of = curves.map((f) => (x) => f({ [data.slider.name]: value, [data.x.name]: x }));
  data.curves.forEach((curve, i) => {
    const points = box.at.map((x) => [x, of[i](x)]).filter(([, y]) => Number.isFinite(y) && y > 0);
    const d = points.map(([x, y], n) => (n ? "L" : "M") + box.px(x).toFixed(1) + " " + box.py(y).toFixed(1)).join("");
    svg(view, "path", { class: "curve", d, "stroke-dasharray": curve.dash, style: ink(curve.tint) });
  });
  const said = [];
  if (onAxis) {
    svg(group, "line", { class: "asked", x1: box.px(value), x2: box.px(value), y1: TOP, y2: box.bottom });
    of.forEach((f, i) => {
      dot(group, box, taken, { x: value, y: f(value), label: "", tint: -1 });
      said.push(`${count(value)}${units(value, data.x.unit)}: ${si(f(value), data.y.unit, 5)}` + (of.length > 1 ? `, ${data.curves[i].label}` : ""));
      for (const level of data.levels) said.push(`${level.name}: ${f(value) < level.y ? level.below : level.above}`);
    });
  }
  for (const pair of data.pairs) {
    const first = of[pair.first], second = of[pair.second], lowest = Math.max(box.at[0], pair.from);
    const met = crossings(first, second, [lowest, ...box.at.filter((x) => x > lowest)]), name = pair.label && pair.label + ": ";
    for (const x of met) dot(group, box, taken, { x, y: first(x), label: name + count(x), tint: pair.tint });
    const last = box.at[STEPS], lower = data.curves[first(last) < second(last) ? pair.first : pair.second].side;
    said.push(name + (met.length ? `equal cost at ${met.map(count).join(" and ")}${unit}`
      : first(last) === second(last) ? "equal cost everywhere" : `no crossing up to ${count(last)}${unit}, ${lower} is cheaper`));
  }
  const ends = of.map((f) => Math.max(TOP, Math.min(box.bottom, box.py(f(box.at[STEPS])))));
  const plain = (i) => data.curves[i].tint < 0 ? 0 : 1;  // first those that no colour tells apart
  const named = data.curves.map((_, i) => i).filter((i) => data.curves[i].short).sort((a, b) => plain(a) - plain(b));
  for (const i of named) write(group, box, taken, box.right - 4, ends[i], data.curves[i].short, 0, false, plain(i));
  for (const { low, label } of shaded) write(group, box, taken, box.px(low), box.bottom, label, 6);
  return said.join("; ") + ".";
}

function legend(key, data) {
  key.replaceChildren();
  for (const { label, dash, tint } of [...data.curves, ...data.levels]) {
    const row = html(key, "div"), sample = svg(row, "svg", { width: 34, height: 10, "aria-hidden": "true" });
    svg(sample, "line", { class: "curve", x1: 1, x2: 33, y1: 5, y2: 5, "stroke-dasharray": dash, style: ink(tint) });
    html(row, "span", label);
  }
  if (!data.lanes.length) return;
  const list = html(key, "div", "", { class: "lanes" });
  for (const { letter, label } of data.lanes) html(list, "div", `${letter}\u2002${label}`);
  const more = html(list, "details");
  html(more, "summary", "Sources");
  for (const { letter, source } of data.lanes) html(more, "div", `${letter} ${source}`);
}

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".live"), [slider, chart, tip, told, key] =
    ["input", "svg", ".tip", "output", ".key"].map((name) => root.querySelector(name));
  getComputedStyle(root).getPropertyValue("--st-chart-categorical-colors").split(",")
    .forEach((tint, i) => root.style.setProperty("--tint" + i, tint.trim()));
  for (const name of ["label", "help"]) root.querySelector("." + name).textContent = data.slider[name];
  for (const name of ["min", "max", "step", "disabled"]) slider[name] = data.slider[name];
  slider.setAttribute("aria-label", data.slider.label);
  const sent = root.dataset.sent, own = data.slider.value;  // a rerun that an older release began changes nothing
  if (!sent || Number(sent) === own) root.dataset.sent = "";
  if (!sent) slider.value = own;
  const curves = data.curves.map(compiled);
  let box, fixed, back, front, guide;
  const redraw = () => {
    told.textContent = moving(front, data, box, curves, Number(slider.value), fixed);
    root.querySelector(".value").textContent = count(Number(slider.value)) + units(Number(slider.value), data.slider.unit);
    chart.setAttribute("aria-label", `${data.title}. ${told.textContent}`);
  };
  const resize = () => {
    box = layout(data, Math.max(280, root.clientWidth || 720));
    chart.replaceChildren();
    [back, front, guide] = ["back", "front", "guide"].map((name) => svg(chart, "g", { class: name }));
    chart.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    fixed = still(back, data, box);
    redraw();
  };
  chart.onpointermove = chart.onpointerdown = (event) => {
    const frame = chart.getBoundingClientRect(), p = (event.clientX - frame.left) * box.width / frame.width;
    guide.replaceChildren();
    tip.hidden = p < LEFT || p > box.right;
    if (tip.hidden) return;
    const x = box.back(p), free = { [data.slider.name]: Number(slider.value), [data.x.name]: x };
    svg(guide, "line", { class: "asked", x1: p, x2: p, y1: TOP, y2: box.floor });
    tip.textContent = [`${count(x)} ${data.x.unit}`,
      ...curves.map((f, i) => `${data.curves[i].label}: ${si(f(free), data.y.unit)}`)].join("\n");
    tip.style.cssText = p > box.width / 2 ? `right:${box.width - p + 12}px` : `left:${p + 12}px`;
  };
  chart.onpointerleave = () => { guide.replaceChildren(); tip.hidden = true; };
  slider.oninput = redraw;
  slider.onchange = () => { root.dataset.sent = slider.value; setStateValue("value", Number(slider.value)); };
  legend(key, data);
  resize();
  const watch = new ResizeObserver(() => { if (Math.abs(Math.max(280, root.clientWidth) - box.width) > 1) resize(); });
  root.stop?.();  // of the run before
  root.stop = () => watch.disconnect();
  watch.observe(root);
  return root.stop;
}
