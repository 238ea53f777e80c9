// Charts by uPlot, in the page's colours. Each can be read with the arrow keys, and as a table.

import { h, short, tick } from "./dom.js";

const alive = new Set();

// Removes the charts of a view that is no longer shown.
export function clear() {
  for (const one of alive) {
    one.observer.disconnect();
    one.plot.destroy();
  }
  alive.clear();
}

// The computed value of a colour: a canvas knows no variables.
function colour(variable) {
  const probe = h("span", { class: "hidden", style: { color: `var(${variable})` } });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function palette() {
  const names = ["accent", "accent-soft", "ink", "muted", "line", "neutral", "surface", "bad"];
  return Object.fromEntries(names.map((one) => [one, colour(`--${one}`)]));
}

const FONT = "12px system-ui, sans-serif";
const SYNC = "ullage";

function axes(colours, formatX, formatY, spaceX) {
  const common = { stroke: colours.muted, font: FONT, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, space: spaceX, size: 30, gap: 8, values: formatX },
    {
      ...common,
      grid: { stroke: colours.line, width: 1 },
      values: (_, all) => all.map(formatY),
      size: (plot, all) => (all ? 14 + 7 * Math.max(...all.map((one) => one.length)) : 40),
      space: 36,
    },
  ];
}

// Shows a chart with a line that says what the pointer or the arrow keys are at.
function mount(summary, height, options, data, describe, hasSync = false) {
  const readout = h("p", { class: "readout", "aria-live": "polite" }, describe(null));
  const box = h("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${summary} Arrow keys move.` });
  const holder = h("div", { class: "chart" }, readout, box);
  let place = null;
  const start = (width) => {
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, points: { size: 7 }, drag: { setScale: false }, ...(hasSync ? { sync: { key: SYNC } } : {}) },
        hooks: {
          setCursor: [(one) => {
            place = one.cursor.idx ?? null;
            readout.textContent = describe(place);
          }],
          ...options.hooks,
        },
        ...options.rest,
      },
      data,
      box,
    );
    box.addEventListener("keydown", (event) => {
      const last = data[0].length - 1;
      const to = { ArrowRight: (place ?? -1) + 1, ArrowLeft: (place ?? last + 1) - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = Math.max(0, Math.min(last, to));
      plot.setCursor({ left: plot.valToPos(data[0][next], "x"), top: plot.bbox.height / 4 });
    });
    const observer = new ResizeObserver(([entry]) => {
      const wide = Math.floor(entry.contentRect.width);
      if (wide > 0 && wide !== plot.width) plot.setSize({ width: wide, height });
    });
    observer.observe(box);
    alive.add({ plot, observer });
  };
  requestAnimationFrame(() => { if (box.isConnected) start(Math.max(200, Math.floor(box.clientWidth))); });
  return holder;
}

// Bars over labelled steps of time. `rows` are { label, date, value }: the label is for the axis; a value may be negative.
export function bars({ rows, summary, format, axis = format, colour: kind = "accent", height = 200, idle }) {
  const colours = palette();
  const values = rows.map((row) => row.value);
  const data = [rows.map((_, place) => place), values];
  const last = rows.length - 1;
  const describe = (place) =>
    place === null || rows[place] === undefined ? idle : `${rows[place].date}: ${format(rows[place].value)}`;
  const least = Math.min(0, ...values.map((one) => one ?? 0));
  const most = Math.max(0, ...values.map((one) => one ?? 0));
  const room = (most - least || 1) * 0.06;
  return mount(summary, height, {
    rest: {
      padding: [10, 10, 0, 0],
      scales: { x: { time: false, range: [-0.6, last + 0.6] }, y: { range: [least ? least - room : 0, most + room] } },
      axes: axes(colours, (_, all) => all.map((one) => (Number.isInteger(one) ? rows[one]?.label ?? "" : "")),
        (one) => axis(one), 64),
      series: [{}, {
        fill: colours[kind],
        stroke: colours[kind],
        width: 0,
        points: { show: false },
        paths: uPlot.paths.bars({ size: [0.72, 46], radius: 0.12 }),
      }],
    },
  }, data, describe, true);
}

// A window over time: what a call carried, what it would have carried, the limit, and compactions.
export function windowLines({ points, compactions, limit, summary, describe, label }) {
  const colours = palette();
  const times = points.map((one) => one.time);
  const data = [times, points.map((one) => one.without), points.map((one) => one.tokens)];
  const all = points.flatMap((one) => [one.tokens ?? 0, one.without ?? 0]);
  const peak = Math.max(1, ...all);
  const top = limit !== null && limit < peak * 3 ? Math.max(limit, peak) : peak;
  const span = times.length > 1 ? times[times.length - 1] - times[0] : 0;
  const room = span * 0.015 || 30;
  const marks = (plot) => {
    const { ctx, bbox } = plot;
    const scale = devicePixelRatio || 1;
    ctx.save();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    for (const one of compactions) {
      const x = Math.round(plot.valToPos(one.time, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = colours.ink;
      ctx.fillStyle = colours.ink;
      ctx.lineWidth = scale;
      ctx.setLineDash([2 * scale, 3 * scale]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top + 8 * scale);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(x - 5 * scale, bbox.top);
      ctx.lineTo(x + 5 * scale, bbox.top);
      ctx.lineTo(x, bbox.top + 8 * scale);
      ctx.fill();
    }
    if (limit !== null && limit <= top * 1.08) {
      const y = Math.round(plot.valToPos(limit, "y", true));
      ctx.strokeStyle = colours.bad;
      ctx.fillStyle = colours.bad;
      ctx.lineWidth = scale;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.fillText(`window ${short(limit)}`, bbox.left + 6 * scale, y - 5 * scale);
    }
    ctx.restore();
  };
  const few = points.length < 60;
  return mount(summary, 320, {
    hooks: { draw: [marks] },
    rest: {
      padding: [14, 10, 0, 0],
      scales: {
        x: { time: true, range: () => [times[0] - room, times[times.length - 1] + room] },
        y: { range: [0, top * 1.08] },
      },
      axes: axes(colours, (_, all) => all.map((one) => label(one, span)), tick, 76),
      series: [
        {},
        { stroke: colours.muted, width: 1.5, dash: [6, 5], spanGaps: true, points: { show: false } },
        {
          stroke: colours.accent,
          fill: colours["accent-soft"],
          width: 2,
          spanGaps: true,
          points: { show: few, size: 5, fill: colours.accent, stroke: colours.accent },
        },
      ],
    },
  }, data, describe);
}
