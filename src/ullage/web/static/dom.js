// Elements, figures and words. Text from servers and models is only ever set as text, never as markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const LONGEST = 300;
// Control, format and private characters, line separators and lone surrogates: what a page would act on or hide.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function visible(text, longest = LONGEST) {
  const shown = String(text).replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
  return shown.length > longest ? `${shown.slice(0, longest - 1)}…` : shown;
}

// A name that others chose: isolated, so that right-to-left letters cannot reorder what stands beside it.
export function name(text, longest = 120) {
  if (text === null || text === undefined || text === "") return h("span", { class: "muted" }, "–");
  const shown = visible(text, longest);
  return h("bdi", { class: "name", title: shown.endsWith("…") ? visible(text, 2000) : null }, shown);
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(number) {
  return number === null || number === undefined ? "–" : grouped.format(number);
}

// Tokens in at most six characters: 950, 12.3k, 4.50M.
export function short(number) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  for (const [limit, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= limit * 0.9995) {
      const divisor = unit === "k" ? 1e3 : limit;
      const value = number / divisor;
      return `${Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toPrecision(3)}${unit}`.replace("-", "−");
    }
  }
  return grouped.format(number).replace("-", "−");
}

// The same on an axis, where round figures stand: 5M.
export const tick = (number) => short(number).replace(/(\.\d*?)0+(?=\D)/, "$1").replace(/\.(?=\D)/, "");

export function tokens(number) {
  return h("span", { class: "figure", title: number === null || number === undefined ? null : `${count(number)} tokens` },
    short(number));
}

export function dollars(number) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  const sign = number < 0 ? "−" : "";
  if (size > 0 && size < 0.005) return `${sign ? ">−" : "<"}$0.01`;
  return `${sign}$${size.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.round(milliseconds / 60000)} min`;
}

export function percent(part, whole) {
  if (!whole || part === null || part === undefined) return "–";
  const share = (100 * part) / whole;
  return `${share >= 99.5 && share < 100 ? share.toFixed(1) : Math.round(share)}%`.replace("-", "−");
}

export function plural(number, word, many = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : many}`;
}

const DAY = { day: "numeric", month: "short" };
export const day = (date) => date.toLocaleDateString("en-GB", DAY);
export const moment = (date) =>
  date.toLocaleString("en-GB", { ...DAY, hour: "2-digit", minute: "2-digit", hour12: false });

export function when(iso) {
  return iso === null || iso === undefined ? "–" : h("time", { datetime: iso }, moment(new Date(iso)));
}

// A bar beside a figure: the figure is in the text, so the bar is hidden from readers.
export function bar(share, kind = "") {
  const width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `bar ${kind}`, style: { width } }));
}

// A table whose rows become cards on narrow screens. Columns: { title, cell(row), number, key }.
export function table(caption, columns, rows, { total = null } = {}) {
  const cells = (row, tag = "td") =>
    columns.map((column, place) =>
      h(place === 0 ? "th" : tag, {
        scope: place === 0 ? "row" : null,
        class: column.number ? "number" : null,
        data: { title: column.title },
      }, column.cell(row)));
  return h("div", { class: "scroll" },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) =>
        h("th", { scope: "col", class: column.number ? "number" : null, title: column.hint ?? null }, column.title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row)))),
      total === null ? null : h("tfoot", {}, h("tr", {}, cells(total)))));
}

export function copyable(command) {
  const shown = visible(command, 2000);
  // A command that is not what it looks like is not to be pasted into a terminal.
  if (shown !== command) return h("div", { class: "command" }, h("code", {}, shown));
  const button = h("button", { type: "button", class: "quiet copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return h("div", { class: "command" }, h("code", {}, shown), button);
}

export function empty(title, text, ...commands) {
  return h("section", { class: "card empty" },
    h("h2", {}, title), h("p", {}, text), commands.map((command) => copyable(command)));
}

export function card(title, note, ...children) {
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, title), note === null ? null : h("p", { class: "muted" }, note)), children);
}

export function stat(label, value, note, kind = "") {
  return h("div", { class: `stat ${kind}` },
    h("dt", {}, label), h("dd", {}, h("span", { class: "value" }, value), h("span", { class: "note" }, note)));
}
