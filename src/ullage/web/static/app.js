// Routes, the period, the colour scheme, and live updates: the current view is loaded again when something changed.

import { clear } from "./charts.js";
import { h, visible } from "./dom.js";
import { VIEWS } from "./views.js";

const POLL = 2500;
const PERIODS = [["1", "Today"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["all", "All"]];
const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };
const CODE = /^#[A-Za-z0-9]{4}-?[A-Za-z0-9]{4}$/;

const main = document.getElementById("main");
const live = document.getElementById("live");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
let days = PERIODS.some(([one]) => one === localStorage.getItem("ullage.days")) ? localStorage.getItem("ullage.days") : "30";
let revision = null;
let loading = 0;

class Failed extends Error {}

async function get(path, parameters = {}) {
  const response = await fetch(`/api/${path}?${new URLSearchParams({ days, zone, ...parameters })}`);
  if (response.status === 401) {
    location.reload();
    return new Promise(() => {});
  }
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failed([said.message, said.suggestion].filter(Boolean).join(": ") || "The request failed.");
  return said;
}

function route() {
  const [view, ...rest] = location.hash.replace(/^#\//, "").split("/");
  const found = VIEWS.find((one) => one.id === view) ?? VIEWS[0];
  let argument = null;
  try {
    argument = rest.length ? decodeURIComponent(rest.join("/")) : null;
  } catch {
    argument = rest.join("/");
  }
  return { view: found, argument };
}

function nav() {
  const { view } = route();
  document.getElementById("nav").replaceChildren(...VIEWS.map((one) =>
    h("a", { href: `#/${one.id}`, "aria-current": one === view ? "page" : null }, one.title)));
}

function periods() {
  const choose = (event) => {
    days = event.target.value;
    localStorage.setItem("ullage.days", days);
    show({ keep: true });
  };
  return h("fieldset", { class: "periods" }, h("legend", { class: "hidden" }, "Period"),
    PERIODS.map(([value, label]) => h("label", {},
      h("input", { type: "radio", name: "days", value, checked: value === days, onchange: choose,
        data: { key: `days-${value}` } }), h("span", {}, label))));
}

// Keeps focus, the caret and opened details when a view is drawn again.
function remember() {
  const active = document.activeElement;
  const opened = new Set([...main.querySelectorAll("details[data-key][open]")].map((one) => one.dataset.key));
  const key = main.contains(active) ? active.dataset.key ?? active.closest("[data-key]")?.dataset.key : null;
  const caret = active instanceof HTMLInputElement && active.type === "search" ? active.selectionStart : null;
  return () => {
    for (const one of main.querySelectorAll("details[data-key]")) one.open = opened.has(one.dataset.key) || one.open;
    if (!key) return;
    const found = [...main.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
    const target = found?.matches("details") ? found.querySelector("summary") : found;
    target?.focus({ preventScroll: true });
    if (caret !== null && target instanceof HTMLInputElement) target.setSelectionRange(caret, caret);
  };
}

async function show({ keep = false } = {}) {
  const turn = ++loading;
  const { view, argument } = route();
  nav();
  document.title = `${view.title} · Ullage`;
  main.setAttribute("aria-busy", "true");
  let body;
  try {
    body = await view.load(get, argument, () => show({ keep: true }));
  } catch (error) {
    if (turn !== loading) return;
    const text = error instanceof Failed ? visible(error.message) : "The gateway does not respond.";
    body = [h("section", { class: "card empty" }, h("h2", {}, "This cannot be shown"), h("p", {}, text))];
  }
  if (turn !== loading) return;
  const restore = keep ? remember() : () => {};
  clear();
  main.replaceChildren(
    h("div", { class: "top" },
      h("div", {}, h("h1", {}, view.title), h("p", { class: "muted" }, view.about)),
      view.hasPeriod && argument === null ? periods() : null),
    ...[body].flat(9).filter((one) => one !== null && one !== undefined));
  main.setAttribute("aria-busy", "false");
  restore();
  if (!keep) {
    window.scrollTo(0, 0);
    if (moved) main.focus({ preventScroll: true });
  }
}

let moved = false;
addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  moved = true;
  show();
});

function say(text, isWell) {
  live.replaceChildren(h("span", { class: isWell ? "dot" : "dot off", "aria-hidden": "true" }), text);
}

async function poll() {
  if (document.visibilityState === "visible") {
    try {
      const found = (await get("changes")).revision;
      const isChanged = revision !== null && found !== revision;
      revision = found;
      if (isChanged) await show({ keep: true });
      const text = "Live";
      if (isChanged || live.textContent !== text) say(text, true);
      if (isChanged) live.dataset.updates = Number(live.dataset.updates ?? 0) + 1;
    } catch {
      say("Not connected; trying again", false);
    }
  }
  setTimeout(poll, POLL);
}

function theme() {
  const button = document.getElementById("theme");
  const names = Object.keys(THEMES);
  const set = (chosen) => {
    if (chosen === "auto") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem("ullage.theme");
    } else {
      document.documentElement.dataset.theme = chosen;
      localStorage.setItem("ullage.theme", chosen);
    }
    button.textContent = `Theme: ${THEMES[chosen]}`;
  };
  const current = () => document.documentElement.dataset.theme ?? "auto";
  set(current());
  button.addEventListener("click", () => {
    set(names[(names.indexOf(current()) + 1) % names.length]);
    show({ keep: true });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show({ keep: true }));
}

document.getElementById("out").addEventListener("click", async () => {
  await fetch("/sign-out", { method: "POST" });
  location.replace("/");
});

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea") || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  if (route().view.id === "tools") document.getElementById("query")?.focus();
  else location.hash = "#/tools";
});

if (CODE.test(location.hash)) {
  // A new link while signed in: become whom it is for.
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/");
  await fetch("/sign-in", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
  });
}
theme();
say("Connecting", false);
await show();
poll();
const me = await get("me");
document.getElementById("who").replaceChildren(
  h("bdi", {}, visible(me.principal, 40)), h("span", { class: "muted" }, ` · ${me.version}`));
