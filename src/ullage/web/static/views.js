// The views: each loads its figures and returns elements.

import * as charts from "./charts.js";
import {
  bar, card, copyable, count, day, dollars, duration, empty, h, moment, name, percent, plural, short, stat, table,
  tick, tokens, visible, when,
} from "./dom.js";

const sum = (rows, of) => rows.reduce((all, row) => all + (of(row) || 0), 0);
const most = (rows, of) => Math.max(0, ...rows.map((row) => of(row) || 0));
const inTokens = (number) =>
  number === null || number === undefined ? "–" : [short(number), h("small", {}, " tokens")];
// A bar of a known figure; nothing for an unknown one.
const share = (part, whole, kind = "") => (part === null || part === undefined ? null : bar(whole ? part / whole : 0, kind));
const at = (iso) => new Date(`${iso}T00:00:00`);

// Every step of a period, with 0 where nothing was recorded. Over the turn of a year, `date` has the year too; the axis
// has no room for it.
function steps(found, of) {
  const known = new Map(found.lines.map((line) => [line.key, of(line)]));
  const first = found.since ?? found.lines[0]?.key;
  if (first === undefined) return [];
  if (found.by === "month") {
    return found.lines.map((line) => {
      const label = at(`${line.key}-01`).toLocaleDateString("en-GB", { month: "short", year: "numeric" });
      return { label, date: label, value: of(line) };
    });
  }
  const rows = [];
  const end = at(found.until);
  const date = at(first);
  const isLong = date.getFullYear() !== end.getFullYear();
  if (found.by === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  for (; date <= end; date.setDate(date.getDate() + (found.by === "week" ? 7 : 1))) {
    const key = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((one) => String(one).padStart(2, "0"));
    rows.push({
      label: day(date), date: isLong ? `${day(date)} ${date.getFullYear()}` : day(date), value: known.get(key.join("-")) ?? 0,
    });
  }
  return rows;
}

function seriesTable(caption, rows, format) {
  return h("details", { data: { key: caption } }, h("summary", {}, "Show as a table"),
    table(caption, [
      { title: "Date", cell: (row) => row.date },
      { title: caption, number: true, cell: (row) => format(row.value) },
    ], rows));
}

const PARTS = [
  ["definitions", "Definitions", "tool definitions kept out of requests, minus Ullage's own tools and replies"],
  ["results", "Results", "tokens of results before their budget, minus those passed on"],
  ["history", "History", "tokens that compactions removed"],
  ["searches", "Searches", "replies of find_tool, a cost"],
  ["readBack", "Read back", "parts of cut results that were read later, a cost"],
];

async function overview(get) {
  const found = await get("overview");
  const { spent, saved, tools } = found.total;
  if (!spent.calls && !tools.requests && !saved.netTokens) {
    return empty("Nothing was recorded in this period",
      "Connect a client to this gateway, or let Ullage read the sessions of the programs on this machine. "
      + "This page updates automatically.", "ullage install", "ullage usage");
  }
  const stats = h("dl", { class: "stats" },
    stat("Saved, net", inTokens(saved.netTokens),
      saved.dollars === null ? "no known price" : `${dollars(saved.dollars)} at list prices`, "lead"),
    stat("Spent", spent.calls ? dollars(spent.dollars) : "–",
      spent.calls
        ? `${plural(spent.calls, "model call")}, ${short(spent.totalTokens)} tokens`
          + (spent.unpricedCalls ? `; ${count(spent.unpricedCalls)} without a known price` : "")
        : "no model call was recorded"),
    stat("Tool results", count(tools.uses),
      `${short(tools.tokens)} tokens, ${plural(tools.errors, "error")}`),
    stat("Lost from prompt caches", inTokens(spent.cacheMissTokens),
      spent.calls ? `${dollars(spent.cacheMissDollars)} more than from the cache` : "known from model calls only"));
  const kept = steps(found, (line) => line.saved.netTokens);
  const paid = steps(found, (line) => (line.spent.calls ? line.spent.dollars ?? 0 : 0));
  const per = { day: "a day", week: "a week", month: "a month" }[found.by];
  const range = kept.length ? `${kept[0].date} to ${kept[kept.length - 1].date}` : "";
  const peak = Math.max(1, ...PARTS.map(([key]) => Math.abs(saved[key])));
  return [
    stats,
    h("div", { class: "pair" },
      card("Net savings", `tokens ${per}`,
        charts.bars({
          rows: kept, summary: `Net tokens saved ${per}, ${range}.`, format: (one) => `${count(one)} tokens`, axis: tick,
          idle: range,
        }), seriesTable("Tokens saved", kept, count)),
      card("Spend", `dollars ${per}, model calls only`,
        charts.bars({
          rows: paid, summary: `Dollars spent ${per}, ${range}.`, format: dollars, colour: "neutral", idle: range,
          axis: (one) => (Number.isInteger(one) ? `$${tick(one)}` : dollars(one)),
        }), seriesTable("Dollars spent", paid, dollars))),
    card("Where the savings come from", "tokens; costs are negative",
      h("ul", { class: "parts" }, PARTS.map(([key, title, about]) => {
        const value = saved[key];
        return h("li", {},
          h("span", { class: "label" }, title, h("small", {}, about)),
          bar(Math.abs(value) / peak, value < 0 ? "cost" : ""),
          h("span", { class: "figure", title: `${count(value)} tokens` }, short(value)));
      }), h("li", { class: "sum" }, h("span", { class: "label" }, "Net"), h("span", {}),
        h("span", { class: "figure", title: `${count(saved.netTokens)} tokens` }, short(saved.netTokens)))),
      saved.unmeasured
        ? h("p", { class: "muted" }, `${plural(saved.unmeasured, "entry", "entries")} of unknown saving are in no sum.`)
        : null),
    card("Clients", null, table("Clients", [
      { title: "Client", cell: (row) => name(row.key) },
      { title: "Model calls", number: true, cell: (row) => (row.spent.calls ? count(row.spent.calls) : "–") },
      { title: "Tokens", number: true, cell: (row) => (row.spent.calls ? tokens(row.spent.totalTokens) : "–") },
      { title: "Spent", number: true, cell: (row) => (row.spent.calls ? dollars(row.spent.dollars) : "–") },
      { title: "Searches and calls", number: true, cell: (row) => count(row.tools.requests) },
      { title: "Saved, net", number: true, cell: (row) => tokens(row.saved.netTokens) },
    ], [...found.clients].sort((a, b) => (b.spent.dollars ?? 0) - (a.spent.dollars ?? 0)))),
  ];
}

const project = (path) => (path === null ? null : path.split(/[\\/]/).filter(Boolean).pop() ?? path);

async function sessions(get, argument) {
  if (argument !== null) return session(get, argument);
  const found = await get("sessions");
  if (!found.sessions.length) {
    return empty("No session in this period", "A session appears as soon as a client calls a tool through this gateway, "
      + "or when Ullage has read the sessions of the programs on this machine.", "ullage usage");
  }
  const peak = most(found.sessions, (row) => row.spent.dollars);
  return card("Sessions", found.all > found.sessions.length ? `the latest ${found.sessions.length} of ${found.all}` : null,
    table("Sessions", [
      {
        title: "Session",
        cell: (row) => h("a", { href: `#/sessions/${encodeURIComponent(row.key)}`, class: "row-link" },
          row.project ? [name(project(row.project), 40), h("small", {}, name(row.key, 24))] : name(row.key, 24)),
      },
      { title: "Last hour", cell: (row) => when(row.last) },
      { title: "Client", cell: (row) => name(row.client, 30) },
      { title: "Model calls", number: true, cell: (row) => (row.spent.calls ? count(row.spent.calls) : "–") },
      {
        title: "Spent", number: true,
        cell: (row) => (row.spent.calls ? [dollars(row.spent.dollars), share(row.spent.dollars, peak, "plain")] : "–"),
      },
      { title: "Tool results", number: true, cell: (row) => (row.tools.requests ? count(row.tools.uses) : "–") },
      { title: "Saved, net", number: true, cell: (row) => (row.tools.requests ? tokens(row.saved.netTokens) : "–") },
    ], found.sessions));
}

const HOW = {
  reported: "Source: input tokens that the provider reported for each call.",
  counted: "Source: counted by Ullage before each call.",
  "known part":
    "Source: Ullage's own records of definitions and results. The client's prompt and messages are not known here.",
};
const MATCHES = {
  "same session": "Savings are those recorded for this session.",
  "client and time": "Savings are those of the gateway's sessions of the same client at the same time (inferred).",
  "several sessions at the same time":
    "Without Ullage: unknown, because several sessions of this client ran at the same time.",
};

// The time of a session's first and last call.
function times(points) {
  if (!points.length) return "–";
  const [first, last] = [points[0], points.at(-1)].map((one) => new Date(one.time * 1000));
  const clock = last.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return `${moment(first)} to ${first.toDateString() === last.toDateString() ? clock : moment(last)}`;
}

async function session(get, key) {
  const found = await get("session", { name: key });
  const back = h("p", {}, h("a", { href: "#/sessions" }, "← All sessions"));
  const { points, compactions } = found;
  const line = found.session;
  const title = found.title ?? project(line.project) ?? key;
  const isKnownPart = found.basis === "known part";
  const head = h("div", { class: "head" }, h("h2", {}, name(title, 90)),
    h("p", { class: "muted" }, name(line.client), " · ", name(key, 60), " · ", times(points)));
  const stats = h("dl", { class: "stats" },
    stat(isKnownPart ? "Known part of the window" : "Window, last call",
      inTokens(points.at(-1)?.tokens),
      found.limit ? `${percent(points.at(-1)?.tokens, found.limit)} of ${short(found.limit)}` : "window size unknown"),
    stat("Without Ullage", inTokens(points.at(-1)?.without),
      points.at(-1)?.without === null || points.at(-1) === undefined ? "unknown"
        : `${short(points.at(-1).without - points.at(-1).tokens)} more`),
    stat("Spent", line.spent.calls ? dollars(line.spent.dollars) : "–",
      line.spent.calls ? `${plural(line.spent.calls, "model call")}` : "no model call was recorded"),
    stat("Compactions", count(compactions.length), compactions.length ? "marked below" : "none was found"));
  if (!points.length) {
    return [back, h("section", { class: "card" }, head, stats, h("p", {}, "The calls of this session are no longer stored."))];
  }
  const span = points.at(-1).time - points[0].time;
  const label = (time) => {
    const date = new Date(time * 1000);
    const clock = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    return span > 36 * 3600 ? day(date) : clock;
  };
  const describe = (place) => {
    if (place === null || points[place] === undefined) return `${plural(points.length, "call")}`;
    const one = points[place];
    const without = one.without === null ? "" : `, without Ullage ${count(one.without)}`;
    return `${moment(new Date(one.time * 1000))}: ${count(one.tokens)} tokens${without}`;
  };
  const how = HOW[found.basis];
  return [back, h("section", { class: "card" }, head, stats,
    h("ul", { class: "legend", "aria-label": "Legend" },
      h("li", { class: "key-window" }, isKnownPart ? "definitions and results" : "window"),
      points.some((one) => one.without !== null) ? h("li", { class: "key-without" }, "without Ullage") : null,
      compactions.length ? h("li", { class: "key-compaction" }, "compaction") : null),
    charts.windowLines({ points, compactions, limit: found.limit, describe, label,
      summary: `Tokens of ${points.length} calls over time, with ${plural(compactions.length, "compaction")}.` }),
    h("p", { class: "muted" }, how, " ", MATCHES[found.match] ?? "Ullage recorded nothing for this session."),
    compactions.length
      ? [h("h3", {}, "Compactions"), table("Compactions", [
          { title: "Time", cell: (row) => moment(new Date(row.time * 1000)) },
          { title: "Before", number: true, cell: (row) => count(row.before) },
          { title: "After", number: true, cell: (row) => count(row.after) },
          { title: "How found", cell: (row) => row.how },
        ], compactions)]
      : null,
    h("details", { data: { key: "points" } }, h("summary", {}, "Show as a table"), table("Calls", [
      { title: "Time", cell: (row) => moment(new Date(row.time * 1000)) },
      { title: "Tokens", number: true, cell: (row) => count(row.tokens) },
      { title: "Without Ullage", number: true, cell: (row) => count(row.without) },
      { title: "Model", cell: (row) => name(row.model) },
    ], points.slice(-500))))];
}

const STATES = {
  ready: "running", starting: "starting", idle: "not started", "backing off": "waiting to retry", broken: "given up",
  missing: "no tools yet", removed: "no longer configured", disabled: "disabled",
};
const BAD = new Set(["broken", "backing off"]);

function state(word) {
  if (word === null || word === undefined) return "–";
  const kind = BAD.has(word) ? "bad" : word === "ready" ? "good" : "";
  return h("span", { class: `chip ${kind}` }, STATES[word] ?? word);
}

async function servers(get) {
  const found = await get("servers");
  const rows = found.servers.filter((row) => !row.isOwn);
  if (!rows.length) {
    return empty("No server is behind this gateway", "Add servers to ullage.toml, or install Ullage in front of a program's servers.",
      "ullage scan", "ullage install");
  }
  const own = found.servers.filter((row) => row.isOwn);
  const listed = sum(rows, (row) => row.tools);
  const unused = sum(rows, (row) => row.unused.length);
  const whole = sum(rows, (row) => row.tokens);
  const peak = most(rows, (row) => row.tokens);
  const busiest = most(rows, (row) => row.line?.tools.uses);
  rows.sort((a, b) => (b.tokens ?? -1) - (a.tokens ?? -1));
  return [
    h("dl", { class: "stats" },
      stat("Definitions", inTokens(whole), "in every request of a client without Ullage"),
      stat("Tools used", [count(listed - unused), h("small", {}, ` of ${count(listed)}`)], "in this period"),
      stat("Definitions of servers not used", [short(sum(rows.filter((row) => !row.line?.tools.uses), (row) => row.tokens)),
        h("small", {}, " tokens")], "none of their tools was called"),
      stat("Searches and calls", count(found.requests), "by all your clients")),
    card("Definitions against use", "tokens of each server's definitions, and calls of its tools",
      table("Servers", [
        { title: "Server", cell: (row) => [name(row.name), state(row.state)] },
        { title: "Definitions", number: true, cell: (row) => [tokens(row.tokens), share(row.tokens, peak, "plain")] },
        { title: "Calls", number: true, cell: (row) => [count(row.line?.tools.uses ?? 0), bar((row.line?.tools.uses ?? 0) / busiest)] },
        {
          title: "Tools used", number: true,
          cell: (row) => (row.tools === null ? "–" : `${count(row.tools - row.unused.length)} of ${count(row.tools)}`),
        },
        { title: "Errors", number: true, cell: (row) => count(row.line?.tools.errors ?? 0) },
        { title: "Tokens per call", number: true,
          cell: (row) => (row.line?.tools.uses ? tokens(Math.round(row.line.tools.tokens / row.line.tools.uses)) : "–") },
        { title: "Never used", cell: (row) => unusedNames(row) },
      ], rows),
      own.length ? h("p", { class: "muted" }, "Ullage's own tools are not counted here.") : null),
  ];
}

function unusedNames(row) {
  if (!row.unused.length) return "–";
  return h("details", { data: { key: `unused-${row.name}` } }, h("summary", {}, plural(row.unused.length, "tool")),
    h("ul", { class: "names" }, row.unused.slice(0, 200).map((one) => h("li", {}, name(one)))));
}

async function results(get) {
  const found = await get("results");
  if (!found.tools.length) {
    return empty("No tool was called in this period",
      "Results appear here with their tokens before and after their budget.", "ullage find \"list orders\"");
  }
  const { before, after, readBack } = found.total;
  const rows = [...found.tools].sort((a, b) => b.before - a.before);
  const peak = most(rows, (row) => row.before);
  return [
    h("dl", { class: "stats" },
      stat("Before", inTokens(before), plural(found.total.uses, "result")),
      stat("After", inTokens(after), `${percent(before - after, before)} less`, "lead"),
      stat("Read back later", inTokens(readBack), "savings that were only postponed"),
      stat("Errors", count(found.total.errors), `${percent(found.total.errors, found.total.uses)} of the results`)),
    card("Results before and after", "tokens of each tool's results; the grey bar is before, the coloured one after",
      table("Results by tool", [
        { title: "Tool", cell: (row) => name(row.tool) },
        { title: "Results", number: true, cell: (row) => count(row.uses) },
        { title: "Before and after", cell: (row) => h("span", { class: "double" },
          bar(row.before / peak, "plain"), bar(row.after / peak)) },
        { title: "Before", number: true, cell: (row) => tokens(row.before) },
        { title: "After", number: true, cell: (row) => tokens(row.after) },
        { title: "Read back", number: true, cell: (row) => (row.readBack ? tokens(row.readBack) : "–") },
        { title: "Errors", number: true, cell: (row) => (row.errors ? count(row.errors) : "–") },
        { title: "Median", number: true, cell: (row) => duration(row.medianMs) },
        { title: "p95", number: true, cell: (row) => duration(row.p95Ms) },
      ], rows)),
  ];
}

async function models(get) {
  const found = await get("models");
  if (!found.models.length) {
    return empty("No model call in this period",
      "Calls appear here when Ullage delegates one, or when it has read the sessions of the programs on this machine.",
      "ullage usage");
  }
  const rows = [...found.models].sort((a, b) => (b.dollars ?? 0) - (a.dollars ?? 0));
  const peak = most(rows, (row) => row.dollars);
  const slowest = most(rows, (row) => row.p95Ms);
  const { total } = found;
  const untimed = sum(rows, (row) => row.calls - row.timedCalls);
  return [
    h("dl", { class: "stats" },
      stat("Spent", dollars(total.dollars), total.unpricedCalls ? `${count(total.unpricedCalls)} calls without a known price`
        : "every call has a price"),
      stat("Model calls", count(total.calls), plural(rows.length, "model")),
      stat("Input", inTokens(total.inputTokens + total.cacheReadTokens + total.cacheWriteTokens),
        `${percent(total.cacheReadTokens, total.inputTokens + total.cacheReadTokens + total.cacheWriteTokens)} from caches`),
      stat("Output", inTokens(total.outputTokens), `${short(total.reasoningTokens)} of reasoning`)),
    card("Models by cost and latency", null, table("Models", [
      { title: "Model", cell: (row) => name(row.model) },
      { title: "Spent", number: true, cell: (row) => [dollars(row.dollars), share(row.dollars, peak, "plain")] },
      { title: "Calls", number: true, cell: (row) => count(row.calls) },
      { title: "A call", number: true,
        cell: (row) => (row.dollars === null ? "–" : dollars(row.dollars / (row.calls - row.unpricedCalls))) },
      { title: "Input", number: true, cell: (row) => tokens(row.inputTokens + row.cacheReadTokens + row.cacheWriteTokens) },
      { title: "Cached", number: true,
        cell: (row) => percent(row.cacheReadTokens, row.inputTokens + row.cacheReadTokens + row.cacheWriteTokens) },
      { title: "Output", number: true, cell: (row) => tokens(row.outputTokens) },
      { title: "Median", number: true, cell: (row) => [duration(row.medianMs), share(row.medianMs, slowest)] },
      { title: "p95", number: true, cell: (row) => duration(row.p95Ms) },
      { title: "Errors", number: true, cell: (row) => (row.errors ? count(row.errors) : "–") },
    ], rows),
    untimed ? h("p", { class: "muted" },
      "Latency covers calls with a known duration, at most the latest 50,000. Calls that were read from logs have none.") : null),
  ];
}

let query = "";
let timer = 0;

async function tools(get, _, again) {
  const asked = query.trim();
  const found = await get("tools", asked ? { query: asked } : {});
  const input = h("input", {
    id: "query", type: "search", value: query, maxlength: "400", placeholder: "What should the tool do?", autocomplete: "off",
    data: { key: "query" }, "aria-describedby": "query-about",
    oninput: (event) => {
      query = event.target.value;
      clearTimeout(timer);
      timer = setTimeout(again, 250);
    },
  });
  const form = h("form", { class: "search", role: "search", onsubmit: (event) => { event.preventDefault(); again(); } },
    h("label", { for: "query", class: "hidden" }, "Search the catalogue"), input,
    h("p", { id: "query-about", class: "muted" }, "The ranking that a model gets from find_tool. Press / to search from anywhere."));
  const title = asked ? plural(found.found, "tool found", "tools found") : plural(found.all, "tool");
  const note = asked ? (found.found > found.tools.length ? `the best ${found.tools.length}` : "best first") : found.all > found.tools.length ? `the first ${found.tools.length} are shown` : null;
  if (!found.tools.length) {
    return [form, asked
      ? empty("Nothing matches", "Describe what the tool should do, or try other words.")
      : empty("The catalogue is empty", "No server's tools are known yet.", "ullage doctor")];
  }
  const best = most(found.tools, (one) => one.why?.score);
  return [form, card(title, note, h("ol", { class: asked ? "hits ranked" : "hits" }, found.tools.map((one) => h("li", {},
    h("div", { class: "hit" }, h("strong", {}, name(one.name)), h("span", { class: "muted" }, name(one.server)),
      one.isReadOnly ? h("span", { class: "chip" }, "read-only") : h("span", { class: "chip warn" }, "may write"),
      one.access === "ask" ? h("span", { class: "chip" }, "asks first") : null,
      one.access === "deny" ? h("span", { class: "chip bad" }, "denied") : null,
      one.isPinned ? h("span", { class: "chip" }, "always listed") : null,
      h("span", { class: "figure" }, `${count(one.tokens)} tokens`)),
    one.description ? h("p", {}, h("bdi", {}, visible(one.description))) : null,
    asked ? reasons(one, best) : null))))];
}

const NAMED = {
  in_part: "the query is part of its name", among_others: "the query says its name among other words",
  wholly: "the query is its name", exactly: "the query is its name, to the letter",
};

function reasons(one, best) {
  const { why } = one;
  if (why === null || why === undefined) return h("p", { class: "muted" }, "A tool of the server that was named.");
  const parts = [["words", why.words], ["meaning", why.meaning], ["closer", why.closer], ["earlier use", why.use]]
    .filter(([, value]) => value);
  const terms = why.terms.filter((term) => term.score >= 0.005);
  return h("details", { data: { key: `why-${one.name}` } },
    h("summary", {}, bar(best ? why.score / best : 0), h("span", {}, `score ${why.score.toFixed(2)}`),
      h("span", { class: "muted" }, parts.map(([word, value]) => `${word} ${value.toFixed(2)}`).join(", "))),
    h("ul", { class: "names" },
      why.named ? h("li", {}, NAMED[why.named] ?? why.named) : null,
      why.nearness === null ? null : h("li", {}, `nearness of meaning ${why.nearness.toFixed(2)}`),
      terms.map((term) => h("li", {}, name(term.term, 40), ` in the ${term.field}: ${term.score.toFixed(2)}`,
        term.asked ? "" : " (akin)"))));
}

async function approvals(get) {
  const found = await get("approvals");
  if (!found.visible) {
    return empty("Only the user who runs this gateway sees pending approvals",
      "With a bearer token, you see your own figures.");
  }
  const waiting = Object.entries(found.definitions);
  if (!found.files.length && !waiting.length) {
    return empty("Nothing waits for your approval", "Project files and changed tool definitions appear here before they take effect. "
      + "This page only shows the command; you decide in the terminal.", "ullage trust");
  }
  const difference = (lines) => h("pre", { class: "difference", tabindex: "0" }, lines.map((line) => {
    const mark = line.trimStart()[0];
    return h("span", { class: mark === "+" ? "added" : mark === "-" ? "removed" : null }, `${visible(line, 4000)}\n`);
  }));
  return [
    found.files.map((file) => card("Project file", file.approvedBefore ? "changed since it was approved" : "never approved",
      h("p", {}, name(file.path, 300)),
      h("ul", {}, file.effects.map((one) => h("li", {}, h("bdi", {}, visible(one, 600))))),
      file.faults.map((one) => h("p", { class: "problem" }, visible(one, 600))),
      file.command ? copyable(file.command) : null)),
    waiting.map(([server, report]) => card(["Server ", name(server)], report.keeps_changing ? "changed more than once" : null,
      report.withheld.map((change) => h("div", { class: "change" },
        h("h3", {}, change.kind === "instructions" ? "instructions" : [change.kind, " ", name(change.name)]),
        h("p", { class: "muted" }, "withheld since ", when(change.since), ": ", visible(change.changed.join("; "), 600)),
        change.flags.map((flag) => h("p", { class: "problem" }, visible(flag, 600))),
        h("details", { data: { key: `change-${server}-${change.name}` } }, h("summary", {}, "Show the difference"),
          difference(change.difference)),
        copyable(change.command))),
      report.new.length ? h("p", { class: "muted" }, "New: ",
        report.new.map((one, place) => [place ? ", " : "", name(one.name)])) : null)),
  ];
}

async function health(get) {
  const found = await get("health");
  const running = found.servers.filter((one) => one.state === "ready").length;
  const failing = found.servers.filter((one) => BAD.has(one.state)).length;
  const isOperator = found.openCalls !== undefined;
  const stored = found.lostEntries ? `${plural(found.lostEntries, "entry", "entries")} of the ledger lost` : found.storeKind;
  return [
    h("dl", { class: "stats" },
      stat("Store", found.isUsable ? "usable" : "not usable", found.storeError ? visible(found.storeError) : stored ?? "",
        found.isUsable && !found.lostEntries ? "" : "bad"),
      stat("Servers running", [count(running), h("small", {}, ` of ${count(found.servers.length)}`)],
        failing ? `${plural(failing, "server")} failing`
          : running < found.servers.length ? "others start at their first use" : "", failing ? "bad" : ""),
      isOperator ? stat("Open calls", count(found.openCalls), "of all clients, now") : null,
      stat("Ullage", found.version, found.started ? ["since ", when(found.started)] : "")),
    found.servers.length
      ? card("Servers", null, table("Servers", [
          { title: "Server", cell: (row) => [name(row.name), state(row.state)] },
          ...(isOperator ? [
            { title: "Calls", number: true, cell: (row) => count(row.calls) },
            { title: "Open", number: true, cell: (row) => count(row.openCalls) },
            { title: "Failures", number: true, cell: (row) => count(row.failures) },
            { title: "Last start", number: true,
              cell: (row) => duration(row.startSeconds === null ? null : row.startSeconds * 1000) },
          ] : []),
          { title: "Protocol", cell: (row) => row.protocol ?? "–" },
          ...(isOperator ? [{ title: "Last error", cell: (row) => (row.error
            ? [h("bdi", {}, visible(row.error)), row.suggestion ? h("small", {}, visible(row.suggestion)) : null] : "–") }] : []),
        ], found.servers))
      : empty("No server is configured", "Add servers to ullage.toml, or install Ullage in front of a program's servers.", "ullage install"),
    found.databases.length || found.folders.length
      ? card("Databases and folders", null, h("ul", { class: "names" },
          found.databases.map((one) => h("li", {}, "database ", name(one))),
          found.folders.map((one) => h("li", {}, "folders ", name(one)))))
      : null,
    h("p", { class: "muted" }, "For monitors: /health, and /metrics for Prometheus."),
  ];
}

export const VIEWS = [
  { id: "overview", title: "Overview", about: "What was saved and what was spent.", load: overview, hasPeriod: true },
  { id: "sessions", title: "Sessions", about: "How a session's window filled, with and without Ullage.", load: sessions, hasPeriod: true },
  { id: "servers", title: "Servers", about: "Tokens of definitions, and how much of them is used.", load: servers, hasPeriod: true },
  { id: "results", title: "Results", about: "What tools returned, before and after their budget.", load: results, hasPeriod: true },
  { id: "models", title: "Models", about: "What models cost and how long they take.", load: models, hasPeriod: true },
  { id: "tools", title: "Tools", about: "The catalogue, with the search that a model uses.", load: tools },
  { id: "approvals", title: "Trust", about: "What waits for your approval, and the command for it.", load: approvals },
  { id: "health", title: "Health", about: "The servers and the store.", load: health },
];
