// A slider with a log-log chart that is redrawn while the slider moves; the value reaches the server on release.
// The formulas are not written here: they arrive as source that the library printed from its own expressions.
const NS = "http://www.w3.org/2000/svg", H = 260, L = 62, R = 24, T = 10, B = 34, STEPS = 96;

function element(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function short(value) {
  if (value === 0) return "0";
  const powers = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  for (const [scale, letter] of powers) {
    if (Math.abs(value) >= scale) return Number((value / scale * (letter === "k" ? 10 : 1)).toPrecision(4)) + letter;
  }
  return value.toPrecision(3);
}

function plain(value) {
  return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-2 ? short(value)
    : value.toLocaleString("en", { maximumFractionDigits: value < 1000 ? 2 : 0 });
}

function compiled(curve) {
  const call = new Function(...curve.names, "return " + curve.source);
  return (free) => call(...curve.names.map((n) => (n in free ? free[n] : curve.values[n])));
}

function crossings(first, second, at) {
  const found = [];
  const gap = (x) => Math.log(first(x) / second(x));
  for (let i = 1; i < at.length; i++) {
    let low = at[i - 1], high = at[i];
    if (!(gap(low) * gap(high) < 0)) continue;
    for (let k = 0; k < 60; k++) {
      const middle = Math.sqrt(low * high);
      if (gap(low) * gap(middle) <= 0) high = middle; else low = middle;
    }
    found.push(Math.sqrt(low * high));
  }
  return found;
}

function draw(svg, told, data, value, W) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  const [x0, x1] = data.x.domain, [y0, y1] = data.y.domain, marker = data.slider.name === data.x.name;
  const px = (x) => L + (W - L - R) * Math.log(x / x0) / Math.log(x1 / x0);
  const py = (y) => H - B - (H - T - B) * Math.log(y / y0) / Math.log(y1 / y0);
  const at = Array.from({ length: STEPS + 1 }, (_, i) => x0 * Math.pow(x1 / x0, i / STEPS));
  for (let k = Math.ceil(Math.log2(x0)); k <= Math.log2(x1) + 1e-9; k++) {
    svg.append(element("line", { class: "grid", x1: px(2 ** k), x2: px(2 ** k), y1: T, y2: H - B }));
    if (W < 520 && k % 2) continue;
    svg.append(element("text", { x: px(2 ** k), y: H - B + 16, "text-anchor": "middle" }, (2 ** k).toLocaleString("en")));
  }
  for (let k = Math.ceil(Math.log10(y0)); k <= Math.log10(y1); k++) {
    svg.append(element("line", { class: "grid", x1: L, x2: W - R, y1: py(10 ** k), y2: py(10 ** k) }));
    svg.append(element("text", { x: L - 6, y: py(10 ** k) + 4, "text-anchor": "end" }, short(10 ** k)));
  }
  for (const level of data.levels) {
    svg.append(element("line", { class: "level", x1: L, x2: W - R, y1: py(level.y), y2: py(level.y) }));
  }
  const functions = data.curves.map(compiled);
  const of = (f) => (x) => f({ [data.x.name]: x, [data.slider.name]: marker ? x : value });
  functions.forEach((f, i) => {
    const points = at.map((x) => [x, of(f)(x)]).filter(([, y]) => Number.isFinite(y) && y > 0);
    const path = points.map(([x, y], n) => (n ? "L" : "M") + px(x).toFixed(2) + " " + py(y).toFixed(2)).join("");
    svg.append(element("path", { class: "curve c" + (i % 2), d: path }));
  });
  let said;
  if (marker) {
    const y = of(functions[0])(value);
    svg.append(element("line", { class: "asked", x1: px(value), x2: px(value), y1: T, y2: H - B }));
    svg.append(element("circle", { class: "dot", cx: px(value), cy: py(y), r: 5 }));
    const sides = data.levels.map((l) => `${l.label}: ${y < l.y ? "memory" : "compute"} bound`);
    said = `${plain(value)} ${data.slider.unit}: ${plain(y)} ${data.y.unit}. ${sides.join("; ")}`;
  } else {
    const met = functions.length > 1 ? crossings(of(functions[0]), of(functions[1]), at) : [];
    met.forEach((x) => svg.append(element("circle", { class: "dot", cx: px(x), cy: py(of(functions[0])(x)), r: 5 })));
    const names = data.curves.map((c) => c.label).join(" and ");
    said = met.length ? `${names} cost the same at ${met.map((x) => plain(Math.round(x))).join(" and ")} ${data.x.unit}`
      : `${names} do not cross here`;
  }
  told.textContent = said;
  svg.setAttribute("aria-label", data.title + ". " + said);
}

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".live"), slider = root.querySelector("input");
  const svg = root.querySelector("svg"), told = root.querySelector("output"), shown = root.querySelector(".value");
  root.querySelector(".name").textContent = data.slider.label;
  root.querySelector(".key").textContent = data.curves.map((c, i) => (i ? "- - - " : "––– ") + c.label).join("   ");
  for (const name of ["min", "max", "step"]) slider[name] = data.slider[name];
  slider.setAttribute("aria-label", data.slider.label);
  slider.title = data.slider.help;
  if (root.dataset.sent !== String(data.slider.value)) slider.value = data.slider.value;
  root.dataset.sent = "";
  const redraw = () => {
    shown.textContent = slider.value;
    draw(svg, told, data, Number(slider.value), Math.max(300, root.clientWidth || 720));
  };
  slider.oninput = redraw;
  slider.onchange = () => {
    root.dataset.sent = String(Number(slider.value));
    setStateValue("value", Number(slider.value));
  };
  redraw();
}
