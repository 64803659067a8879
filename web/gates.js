// The page of gates: who is inside, who waits and in which order, sessions, rates.

import { brief, byId, element, fill, page, span, svg, table } from "./dom.js";
import { drawWaits } from "./waits.js";

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

// How a gate's ownership travels, where each node has a part of it: who is in, who asks, and what a hand-over has cost.
function travels(gate) {
  if (!gate.nodes?.length) return null;
  const sum = (name) => gate.nodes.reduce((all, node) => all + node[name], 0);
  const [messages, handOvers] = [sum("messages"), sum("hand_overs")];
  const nodes = [...gate.nodes].sort((one, other) => one.node - other.node).map((node) => {
    const state = node.in ? "in" : node.asks ? "asks" : "out";
    const words = { in: "is in", asks: "asks to be let in", out: "is out" }[state];
    return element("li", { class: `travel-node ${state}`, title: `node ${node.node} ${words}; it has sent ${node.messages} messages and was let in ${node.hand_overs} times` },
      element("b", {}, `node ${node.node}`), element("span", {}, state === "out" ? "" : state));
  });
  const cost = handOvers ? messages / handOvers : null;
  return element("div", { class: "travels" },
    element("span", { class: "soft" }, `using ${gate.using}, burst ${gate.burst}; what travels: ${gate.travels}`),
    element("ul", { class: "travel-nodes" }, ...nodes),
    scale(cost, gate.published_range),
    element("span", { class: "soft", title: `${messages} messages, ${handOvers} hand-overs; published: ${gate.published ?? "nothing"}` },
      cost === null ? "no hand-over yet" : `${cost.toFixed(2)} messages per hand-over`,
      gate.published_range ? `, published ${gate.published_range.map((n) => +n.toFixed(2)).join(" to ")}` : ""));
}

// The measured cost as a tick on the band of the published one.
function scale(cost, range) {
  if (cost === null || !range) return null;
  const [width, height] = [120, 14];
  const most = Math.max(range[1], cost) * 1.15 || 1;
  const x = (value) => (value / most) * width;
  const words = `${cost.toFixed(2)} messages per hand-over; published ${range[0]} to ${range[1]}`;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "travel-scale", "aria-label": words },
    svg("rect", { x: 0, y: 6, width, height: 2, class: "line" }),
    svg("rect", { x: x(range[0]), y: 3, width: Math.max(2, x(range[1]) - x(range[0])), height: 8, class: "band" }),
    svg("rect", { x: x(cost) - 1, y: 0, width: 2, height, class: cost > range[1] + 1e-9 ? "tick over" : "tick" }));
}

function holderLine(holder, now) {
  const ends = holder.until === null ? "" : `, ends in ${span(holder.until - now)}`;
  return element("li", { class: "inside" },
    element("span", { class: "place" }, holder.leads ? "leads" : "inside"),
    element("span", {}, who(holder), element("span", { class: "soft" }, holder.mode === "exclusive" ? "" : ` ${holder.mode}`)),
    element("span", { class: "mono" }, `fence ${holder.fence}`),
    element("span", { class: "soft" }, `for ${span(now - holder.since)}${ends}${holder.reason ? `: ${holder.reason}` : ""}`));
}

function waiterLine(waiter, place, now) {
  const set = waiter.set.length > 1 ? `, with ${waiter.set.length - 1} more` : "";
  const passed = waiter.overtaken ? `, overtaken ${waiter.overtaken}×` : "";
  return element("li", { class: "waiting" },
    element("span", { class: "place" }, `waits, ${place}.`),
    element("span", {}, who(waiter), element("span", { class: "soft" }, waiter.mode === "exclusive" ? "" : ` ${waiter.mode}`)),
    element("span", {}, `class ${waiter.class}${set}${passed}`),
    element("span", { class: "soft" }, `for ${span(now - waiter.since)}${waiter.reason ? `: ${waiter.reason}` : ""}`));
}

function drawGates(state) {
  const wanted = byId("filter").value.trim();
  const gates = state.gates.filter((gate) => gate.name.includes(wanted));
  const [first, next] = page("gates", gates, 20);
  const cards = first.map((gate) => {
    const people = [
      ...gate.holders.map((holder) => holderLine(holder, state.now_ms)),
      ...gate.waiters.map((waiter, index) => waiterLine(waiter, index + 1, state.now_ms)),
    ];
    return element("article", { class: "gate", "data-key": gate.name, "data-gate": gate.name },
      element("header", {}, element("h3", {}, gate.name), element("span", { class: "what" }, gateWords(gate))),
      travels(gate),
      people.length ? element("ul", { class: "people" }, ...people) : null);
  });
  const more = state.gates_more ? [element("p", { class: "soft" }, `and ${state.gates_more} more; filter or use testigo gate list`)] : [];
  fill(byId("gate-list"), ...(cards.length ? [...cards, next] : [element("p", { class: "empty" }, state.missing?.length ? "No gates at the nodes that answered." : "No gates. Try: testigo lock demo -- sleep 5")]), ...more);
}

function drawSessions(state) {
  const clustered = state.node !== undefined;
  const heads = ["session", "label", ...(clustered ? ["home"] : []), "silence allowed", "last heard", "inside", "waits for"];
  const [first, next] = page("sessions", state.sessions, 25);
  const rows = first.map((session) => {
    const heard = session.awaited ? "awaited after a restart" : session.connected ? "connected" : `${span(state.now_ms - session.heard)} ago`;
    const row = [element("span", { class: "mono" }, session.session), session.label ?? "", ...(clustered ? [`node ${session.home}`] : []),
      session.ttl_ms === null ? "ends with its connection" : span(session.ttl_ms), heard,
      [...session.holds, ...session.leads.map((name) => `leads ${name}`)].join(", "),
      [...session.waits, ...session.campaigns.map((name) => `to lead ${name}`)].join(", ")];
    row.key = String(session.session);
    return row;
  });
  fill(byId("sessions"), table(heads, rows, "No sessions."), next,
    state.sessions_more ? element("p", { class: "soft" }, `and ${state.sessions_more} more; testigo session list has all`) : null);
}

function drawRates(state) {
  // Counters are of all members that have answered: those of other members cannot be compared.
  const comparable = before && String(before.missing) === String(state.missing);
  const seconds = comparable ? (state.now_ms - before.now_ms) / 1000 : 0;
  const rate = (name) => seconds > 0 ? (Math.max(0, state.counters[name] - before.counters[name]) / seconds).toFixed(seconds < 0.5 ? 0 : 1) : "–";
  const tile = (value, words) => element("div", { class: "rate", title: `${value} ${words}` },
    element("b", {}, typeof value === "number" ? brief(value) : value), element("span", {}, words));
  fill(byId("rates"),
    tile(rate("grants"), "grants per second"), tile(rate("waits"), "waits per second"),
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
  drawWaits(byId("graph"), latest);
  drawSessions(latest);
}

byId("filter").addEventListener("input", () => latest && drawGates(latest));
