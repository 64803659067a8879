// Who waits for whom, gate by gate: a gate is a box with who is inside and who waits, in their order. An arrow goes from somebody
// who is inside a gate to where the same session waits, so what everything waits for stands at the left.

import { element, fill, many, page, svg, table } from "./dom.js";
import { head, short } from "./picture.js";

const GATES_MAX = 12;    // gates that are drawn; more are a table
const ROWS_MAX = 8;      // sessions that wait at one of them
const LETTER = 7;
const ROW = 19;
const TITLE = 26;
const GAP = { x: 70, y: 18 };

// The gates where somebody waits: who is inside, who waits, and at which gates those inside wait themselves.
function gatesOf(edges) {
  const gates = new Map();
  for (const { gate: name, waiter, blocker, by } of edges) {
    if (!gates.has(name)) gates.set(name, { name, inside: new Set(), ahead: new Map(), behind: [] });
    const gate = gates.get(name);
    if (by === "holder") gate.inside.add(blocker);
    gate.ahead.set(waiter, (gate.ahead.get(waiter) ?? 0) + 1);
  }
  for (const gate of gates.values()) {
    // Whoever stands further back has more in its way.
    gate.waiting = [...gate.ahead].sort(([, one], [, other]) => one - other).map(([session]) => session);
    gate.behind = [...gates.values()].filter((other) => other !== gate && [...gate.inside].some((session) => other.ahead.has(session)));
  }
  return [...gates.values()];
}

// How many gates at most are to be left before those inside a gate get on.
function depth(gate, on = new Set()) {
  if (gate.depth === undefined) {
    if (on.has(gate)) return 0;
    on.add(gate);
    gate.depth = Math.max(-1, ...gate.behind.map((other) => depth(other, on))) + 1;
  }
  return gate.depth;
}

function rowsOf(gate, called) {
  const waiting = gate.waiting.slice(0, gate.waiting.length > ROWS_MAX ? ROWS_MAX - 1 : ROWS_MAX);
  const more = gate.waiting.length - waiting.length;
  return [
    ...[...gate.inside].map((session) => ({ kind: "inside", session, words: `inside ${short(called(session))}` })),
    ...waiting.map((session, at) => ({ kind: "waiting", session, words: `${at + 1}. ${short(called(session))}` })),
    ...(more ? [{ kind: "waiting", words: `and ${more} more` }] : []),
  ];
}

// Boxes in columns by depth. Where an arrow passes a column, room is kept for it.
function layOut(gates, called) {
  const columns = [];
  const put = (box, column) => (columns[column] ??= []).push(box);
  for (const gate of gates) {
    gate.rows = rowsOf(gate, called);
    gate.width = LETTER * Math.max(short(gate.name).length + 1, ...gate.rows.map((row) => row.words.length)) + 20;
    gate.height = TITLE + ROW * gate.rows.length + 8;
    put(gate, depth(gate));
  }
  const arrows = gates.flatMap((gate) => gate.behind.flatMap((other) => [...gate.inside].filter((session) => other.ahead.has(session)).map((session) => {
    const passes = [];
    for (let column = gate.depth - 1; column > other.depth; column -= 1) {
      const pass = { width: 0, height: 8, behind: [], to: other };
      put(pass, column);
      passes.push(pass);
    }
    return { gate, other, session, passes };
  })));
  let x = 16;
  for (const column of columns) {
    // Beside what they wait for.
    const middle = (box) => {
      const before = box.to ? [box.to] : box.behind;
      return before.length ? before.reduce((sum, one) => sum + (one.y ?? 0), 0) / before.length : 0;
    };
    column.sort((one, other) => middle(one) - middle(other));
    let y = 16;
    for (const box of column) {
      [box.x, box.y] = [x, y];
      y += box.height + GAP.y;
    }
    column.width = Math.max(...column.map((box) => box.width));
    for (const box of column) if (box.to) box.width = column.width;
    x += column.width + GAP.x;
  }
  const boxes = columns.flat();
  return { arrows, width: x - GAP.x + 16, height: Math.max(...boxes.map((box) => box.y + box.height)) + 16 };
}

// The middle of a session's row in a box; of one that has no row of its own, of the last.
function rowAt(gate, kind, session) {
  const at = gate.rows.findIndex((row) => row.kind === kind && row.session === session);
  return gate.y + TITLE + ROW * ((at < 0 ? gate.rows.length - 1 : at) + 0.5);
}

function arrowShape({ gate, other, session, passes }) {
  const ends = [[gate.x, rowAt(gate, "inside", session)], ...passes.flatMap((pass) => [[pass.x + pass.width, pass.y + 4], [pass.x, pass.y + 4]]),
    [other.x + other.width, rowAt(other, "waiting", session)]];
  const line = ends.map(([x, y], at) => {
    if (at === 0) return `M${x} ${y}`;
    const [x0, y0] = ends[at - 1];
    return at % 2 ? `C${(x0 + x) / 2} ${y0} ${(x0 + x) / 2} ${y} ${x} ${y}` : `L${x} ${y}`;
  }).join("");
  const [x, y] = ends.at(-1);
  return svg("g", {}, svg("path", { class: "edge", d: line }), head(x, y, 180, { class: "head" }));
}

function box(gate, called) {
  return svg("g", { "data-waited": gate.name },
    svg("rect", { class: "gate-box", x: gate.x, y: gate.y, width: gate.width, height: gate.height, rx: 6 }),
    svg("text", { class: "name", x: gate.x + 10, y: gate.y + 18 }, short(gate.name), svg("title", {}, gate.name)),
    gate.rows.map((row, at) => svg("text", { class: row.kind, x: gate.x + 10, y: gate.y + TITLE + ROW * at + 14 }, row.words,
      row.session === undefined ? null : svg("title", {}, `${called(row.session)}, session ${row.session}`))));
}

function asTable(gates, called) {
  const sorted = gates.sort((one, other) => depth(one) - depth(other) || other.waiting.length - one.waiting.length);
  const [shown, more] = page("waits", sorted, 25);
  const rows = shown.map((gate) => {
    const waiting = gate.waiting.slice(0, ROWS_MAX).map((session, at) => `${at + 1}. ${called(session)}`).join(", ");
    const rest = gate.waiting.length > ROWS_MAX ? ` and ${gate.waiting.length - ROWS_MAX} more` : "";
    const row = [element("b", {}, gate.name), element("span", { class: "inside" }, [...gate.inside].map(called).join(", ") || "nobody"),
      element("span", { class: "warning" }, waiting + rest), gate.behind.map((other) => other.name).join(", ")];
    row.key = gate.name;
    return row;
  });
  return [table(["gate", "inside", "waiting, in order", "who is inside waits at"], rows, ""), more];
}

// Draws them, or lists them where a drawing would be too large to read.
export function drawWaits(node, state) {
  if (!state.edges.length) {
    fill(node, element("p", { class: "empty" }, "Nobody waits."));
    return;
  }
  const labels = new Map(state.sessions.map((session) => [session.session, session.label]));
  const called = (session) => labels.get(session) ?? `session ${session}`;
  const gates = gatesOf(state.edges);
  const picture = gates.length > GATES_MAX ? null : layOut(gates, called);
  if (!picture || picture.width > node.clientWidth - 4) {
    fill(node, asTable(gates, called));
    return;
  }
  const { arrows, width, height } = picture;
  fill(node, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${many(gates.length, "gate")} where somebody waits` },
  arrows.map(arrowShape), gates.map((gate) => box(gate, called))),
  element("p", { class: "soft" }, "an arrow leads from who is inside a gate to where the same session waits"));
}
