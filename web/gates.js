// The page of gates: who is inside, who waits and in which order, sessions, rates.

import { byId, element, fill, span, svg } from "./dom.js";
import { LETTER, short } from "./picture.js";

let latest = null;      // the last state
let before = null;      // the one that rates are counted from

const who = (person) => person.label ? `${person.label} (session ${person.session})` : `session ${person.session}`;

function gateWords(gate) {
  const words = [gate.rule, `by ${gate.order}`, `${gate.classes} classes`, `overtakes ${gate.overtakes}`];
  if (gate.lease_ms !== null) words.push(`hold limit ${span(gate.lease_ms)}`);
  if (gate.capacity !== null) words.push(`capacity ${gate.capacity}`);
  if (gate.stay_ms !== null) words.push(`stay ${span(gate.stay_ms)}`);
  if (gate.implicit) words.push("implicit");
  if (gate.owner !== undefined) words.push(`owned by node ${gate.owner}`);
  if (gate.awaits.length) words.push(`waits for ${gate.awaits.join(", ")} since a crash`);
  return words.join(", ");
}

function holderLine(holder, now) {
  const ends = holder.until === null ? "" : `, ends in ${span(holder.until - now)}`;
  return element("li", { class: "inside" },
    element("span", { class: "place" }, holder.leads ? "leads" : "inside"),
    element("span", {}, who(holder), element("span", { class: "soft" }, holder.mode === "exclusive" ? "" : ` ${holder.mode}`)),
    element("span", { class: "mono" }, `fence ${holder.fence}`),
    element("span", { class: "soft" }, `since ${span(now - holder.since)}${ends}${holder.reason ? `: ${holder.reason}` : ""}`));
}

function waiterLine(waiter, place, now) {
  const set = waiter.set.length > 1 ? `, with ${waiter.set.length - 1} more` : "";
  const passed = waiter.overtaken ? `, overtaken ${waiter.overtaken}×` : "";
  return element("li", { class: "waiting" },
    element("span", { class: "place" }, `waits, ${place}.`),
    element("span", {}, who(waiter), element("span", { class: "soft" }, waiter.mode === "exclusive" ? "" : ` ${waiter.mode}`)),
    element("span", {}, `class ${waiter.class}${set}${passed}`),
    element("span", { class: "soft" }, `since ${span(now - waiter.since)}${waiter.reason ? `: ${waiter.reason}` : ""}`));
}

function drawGates(state) {
  const wanted = byId("filter").value.trim();
  const gates = state.gates.filter((gate) => gate.name.includes(wanted));
  const cards = gates.map((gate) => {
    const people = [
      ...gate.holders.map((holder) => holderLine(holder, state.now_ms)),
      ...gate.waiters.map((waiter, index) => waiterLine(waiter, index + 1, state.now_ms)),
    ];
    return element("article", { class: "gate", "data-gate": gate.name },
      element("header", {}, element("h3", {}, gate.name), element("span", { class: "what" }, gateWords(gate))),
      people.length ? element("ul", { class: "people" }, ...people) : null);
  });
  const more = state.gates_more ? [element("p", { class: "soft" }, `and ${state.gates_more} more; filter or use testigo gate list`)] : [];
  fill(byId("gates"), ...(cards.length ? cards : [element("p", { class: "empty" }, state.missing?.length ? "No gates at the nodes that answered." : "No gates. Try: testigo lock demo -- sleep 5")]), ...more);
}

function drawSessions(state) {
  const clustered = state.node !== undefined;
  const heads = ["session", "label", ...(clustered ? ["home"] : []), "silence allowed", "last heard", "inside", "waits for"];
  const rows = state.sessions.map((session) => {
    const heard = session.awaited ? "awaited after a restart" : session.connected ? "connected" : `${span(state.now_ms - session.heard)} ago`;
    const cells = [session.session, session.label ?? "", ...(clustered ? [`node ${session.home}`] : []), session.ttl_ms === null ? "ends with its connection" : span(session.ttl_ms),
      heard, session.holds.join(", "), session.waits.join(", ")];
    return element("tr", {}, ...cells.map((cell, index) => element("td", { "data-head": heads[index], class: index === 0 ? "mono" : "" }, String(cell))));
  });
  fill(byId("sessions"), rows.length
    ? element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))), element("tbody", {}, ...rows))
    : element("p", { class: "empty" }, "No sessions."),
  state.sessions_more ? element("p", { class: "soft" }, `and ${state.sessions_more} more; testigo session list has all`) : null);
}

// Sessions on a circle, an arrow from each waiter to who is in its way.
function drawGraph(state) {
  const labels = new Map(state.sessions.map((session) => [session.session, session.label]));
  const names = [...new Set(state.edges.flatMap((edge) => [edge.waiter, edge.blocker]))];
  if (!names.length) {
    fill(byId("graph"), element("p", { class: "empty" }, "Nobody waits."));
    return;
  }
  const called = (name) => short(labels.get(name) ?? String(name));
  const longest = LETTER * Math.max(...names.map((name) => called(name).length));
  const radius = Math.max(90, names.length * 14, longest * 0.7);
  const size = { width: 2 * radius + longest + 40, height: 2 * radius + 100 };
  const place = new Map(names.map((name, index) => {
    const angle = 2 * Math.PI * index / names.length - Math.PI / 2;
    return [name, [size.width / 2 + radius * Math.cos(angle), size.height / 2 + radius * Math.sin(angle)]];
  }));
  const picture = svg("svg", { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, role: "img",
    "aria-label": `${state.edges.length} waits between ${names.length} sessions` });
  const head = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  head.append(svg("path", { d: "M0 0 8 4 0 8z", fill: "currentColor" }));
  picture.append(head);
  for (const edge of state.edges) {
    const [[x1, y1], [x2, y2]] = [place.get(edge.waiter), place.get(edge.blocker)];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [dx, dy] = [(x2 - x1) / length * 16, (y2 - y1) / length * 16];
    picture.append(svg("path", { class: edge.by === "holder" ? "edge" : "edge behind", d: `M${x1 + dx} ${y1 + dy}L${x2 - dx} ${y2 - dy}`, "marker-end": "url(#head)" }));
    picture.append(svg("text", { class: "name", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 4, "text-anchor": "middle" }, edge.gate));
  }
  for (const [name, [x, y]] of place) {
    picture.append(svg("circle", { class: "node", cx: x, cy: y, r: 13 }));
    // Outside of the circle, where no arrow goes.
    picture.append(svg("text", { x, y: y < size.height / 2 - 1 ? y - 20 : y + 30, "text-anchor": "middle" }, called(name)));
  }
  fill(byId("graph"), picture,
    element("p", { class: "soft" }, "solid: the other is inside; dashed: the other stands ahead in the queue"));
}

function drawRates(state) {
  // Counters are of all members that have answered: those of other members cannot be compared.
  const comparable = before && String(before.missing) === String(state.missing);
  const seconds = comparable ? (state.now_ms - before.now_ms) / 1000 : 0;
  const rate = (name) => seconds > 0 ? (Math.max(0, state.counters[name] - before.counters[name]) / seconds).toFixed(seconds < 0.5 ? 0 : 1) : "–";
  const tile = (value, words) => element("div", { class: "rate" }, element("b", {}, String(value)), element("span", {}, words));
  fill(byId("rates"), 
    tile(rate("grants"), "grants a second"), tile(rate("waits"), "waits a second"),
    tile(state.sizes.holds, "inside now"), tile(state.sizes.waits, "waiting now"),
    tile(state.sizes.gates, "gates"), tile(state.sizes.sessions, "sessions"),
    tile(state.counters.deadlocks, "deadlocks refused"), tile(state.counters.losses, "holds lost"));
}

export function take(state) {
  if (!before || state.now_ms - before.now_ms > 1000) before = latest;
  latest = state;
}

export function update() {
  if (!latest) return;
  drawRates(latest);
  drawGates(latest);
  drawGraph(latest);
  drawSessions(latest);
}

byId("filter").addEventListener("input", () => latest && drawGates(latest));
