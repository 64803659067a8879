// The page of one pool: its slots, who has them, who is out of reach, who waits, and what was donated. Every node serves it.

import { command } from "./api.js";
import { button, byId, element, fill, link, listen, many, page, short, span, table } from "./dom.js";
import { paced } from "./pace.js";
import { donations } from "./pools.js";
import { freeLowWords, gridOf, legend, ownerClass, ownerName, ownerNames, partWords, roomFor } from "./slots.js";

let name = null;        // the pool
let zoom = null;        // the first and the last slot drawn; null for all
let chosen = 0;         // the cell that is described
let drawn = null;       // the last answer, its cells, and the room for them

// Nobody knows yet who has a withheld slot, or whether anybody has.
const who = (row) => row.session === null ? "withheld: an earlier session may still have it" : row.label ? `${row.label} (session ${row.session})` : `session ${row.session}`;

// Which nodes have answered (`here`), and which have not: those out of reach (`out`, with null for slots without an owner), and on Corosync,
// where each node speaks only for itself, the `others` of its part. `owned` is how many slots each owns; `all`, whether everybody answered.
function partsOf(pool) {
  const owned = new Map(pool.owned);
  const here = new Set(pool.nodes.map((row) => row.node));
  const out = new Set([...pool.out_of_reach.map(([node]) => node), ...pool.missing].filter((node) => !here.has(node)));
  const others = new Set();
  for (const node of [...here, ...out]) if (!owned.has(node)) owned.set(node, 0);
  for (const node of owned.keys()) if (!here.has(node) && !out.has(node)) (pool.engine && node !== null ? others : out).add(node);
  return { owned, here, out, others, all: others.size === 0 && [...out].every((node) => node === null) };
}

// Where a statement holds: everywhere, or only at the nodes that answered.
const where = (pool) => partsOf(pool).all ? "" : ` at ${ownerNames(pool.nodes.map((row) => row.node))}`;

// The cells, with what is used in each and its description.
function cellsOf(pool) {
  const { here, others } = partsOf(pool);
  const unknown = (node) => here.has(node) ? undefined : node === null ? "claimed by two sides" : others.has(node) ? "not known here" : "out of reach";
  const uses = new Map(pool.uses.map(([node, cell, used, withheld]) => [`${node} ${cell}`, [used, withheld]]));
  const taken = new Map(pool.taken.map((row) => [row.slot, row]));
  return pool.cells.map(([first, last, owners], index) => {
    const parts = [];
    for (let at = 0; at < owners.length; at += 2) {
      const [node, slots] = [owners[at], owners[at + 1]];
      const [used, withheld] = uses.get(`${node} ${index}`) ?? [0, 0];
      parts.push({ node, slots, used: Math.min(used, slots), withheld: Math.min(withheld, slots), unknown: unknown(node) });
    }
    const row = pool.cells_each === 1 ? taken.get(first) : undefined;
    const by = !row ? "" : row.session === null ? "; an earlier session may still have it" : `; ${who(row)} has it, fence ${row.fence}`;
    const slots = first === last ? `slot ${first}` : `slots ${first} to ${last}`;
    return { slots, parts, words: `${slots}: ${parts.map(partWords).join("; ")}${by}` };
  });
}

function factsOf(pool) {
  const withheld = pool.nodes.reduce((sum, node) => sum + node.withheld, 0);
  const { owned, out, others, all } = partsOf(pool);
  const withThem = (nodes, words) => {
    const owners = [...nodes].filter((node) => node !== null && owned.get(node) > 0);
    return owners.length ? [`${owners.reduce((sum, node) => sum + owned.get(node), 0)} ${words} ${ownerNames(owners)}`] : [];
  };
  const counts = [many(pool.slots, pool.names === "named" ? "named slot" : "slot"), `${pool.free} free`, `${pool.used - withheld} used`,
    ...(withheld ? [`${withheld} withheld`] : []), ...withThem(out, "out of reach with"), ...withThem(others, "of"), `${pool.waiting} waiting${where(pool)}`];
  return [counts.join(", "), ...freeLowWords(pool.free_low), ...(all ? [`${pool.donated} donated since the nodes started`] : [])].join("; ");
}

function absence(pool, node, slots) {
  if (node === null) return "two sides claimed them; nobody may use them";
  if (partsOf(pool).others.has(node)) return "on Corosync each node shows only what it gave out itself";
  if (pool.missing.includes(node)) return slots ? "does not answer; its slots may be in use there" : "does not answer";
  if (!slots) return "no slot is out of reach with it";
  return `its slots may be in use there; they come back with it${pool.engine ? "" : ", or when it has been removed for good"}`;
}

function nodeCard(pool, node, slots, row) {
  const words = row
    ? [many(row.free, "free slot"), `${row.used - row.withheld} used`, ...(row.withheld ? [`${row.withheld} withheld until its earlier sessions are back or have ended`] : []),
      ...(row.waiting ? [`${row.waiting} waiting`] : []), `received ${row.received}, gave ${row.given}`].join(", ")
    : absence(pool, node, slots);
  return element("li", { "data-node": node ?? "none", class: partsOf(pool).out.has(node) ? "out" : null },
    element("b", { class: `owner-mark ${ownerClass(node)}` }, ownerName(node)), ` owns ${many(slots, "slot")}`, element("span", { class: "soft" }, words));
}

// The nodes of this side beside those out of reach, and what each owns.
function sidesOf(pool) {
  const rows = new Map(pool.nodes.map((row) => [row.node, row]));
  const parts = partsOf(pool);
  const all = [...parts.owned].sort(([one], [other]) => (one ?? Infinity) - (other ?? Infinity));
  const [here, others, there] = [parts.here, parts.others, parts.out].map((nodes) => all.filter(([node]) => nodes.has(node)));
  const side = (title, nodes, attributes) => element("div", attributes, element("h3", {}, `${title}: `, element("span", { class: "soft" }, `${many(nodes.reduce((sum, [, slots]) => sum + slots, 0), "slot")}`)),
    element("ul", { class: "sides" }, ...nodes.map(([node, slots]) => nodeCard(pool, node, slots, rows.get(node)))));
  const title = parts.all ? "All nodes answer" : others.length ? "This node" : "On this side";
  return element("div", { class: others.length || there.length ? "columns even" : null }, side(title, here, { id: "pool-here" }),
    others.length ? side("Others of its part", others, { id: "pool-others" }) : null, there.length ? side(parts.all ? "Nobody's" : "Out of reach", there, { id: "pool-there" }) : null);
}

const ordinal = (number) => `${number}${number % 100 > 10 && number % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] ?? "th"}`;

function waitsOf(pool) {
  const places = new Map();   // by node: how many of its rows came before this one
  const rows = pool.waits.map((wait) => {
    const place = (places.get(wait.node) ?? 0) + 1;
    places.set(wait.node, place);
    const slots = wait.least === wait.most ? many(wait.most, "slot") : `up to ${many(wait.most, "slot")}`;
    return element("li", { class: "waiting" },
      element("span", { class: "place" }, ordinal(place)), element("span", {}, who(wait)),
      element("span", {}, `for ${slots}${wait.where ? ` with the label ${wait.where}` : ""}, at ${ownerName(wait.node)}`),
      element("span", { class: "soft" }, `for ${span(wait.waits_ms)}`));
  });
  const [first, next] = page("pool waits", rows, 25);
  return rows.length ? [element("ul", { class: "people gate" }, ...first), next] : [element("p", { class: "empty" }, `Nobody waits${where(pool)}.`)];
}

function takenOf(pool) {
  const [first, next] = page("pool taken", pool.taken, 25);
  const rows = first.map((row) => {
    const cells = [element("b", {}, row.slot), short(ownerName(row.node)), who(row), row.session === null ? null : element("span", { class: "mono short" }, row.fence), short(span(row.held_ms))];
    cells.key = String(row.slot);
    return cells;
  });
  return [table(["slot", "at", "by", "fence", "for"], rows, `Nothing is in use${where(pool)}.`), next,
    pool.taken.length < pool.used ? element("p", { class: "soft" }, listed(pool)) : null];
}

// A node lists only the first of its slots in use.
function listed(pool) {
  const [some, all] = [pool.taken.length, pool.used].map((number) => number.toLocaleString("en"));
  return pool.nodes.length === 1 ? `the first ${some} of ${all} are listed` : `${some} of ${all} are listed, the first of each node`;
}

function labelsOf(pool) {
  const rows = pool.labels.map((row) => {
    const cells = [element("b", {}, row.label), row.slots, row.wished];
    cells.key = row.label;
    return cells;
  });
  const [first, next] = page("pool labels", rows, 10);
  return [table(["label", "slots", "asked for by nodes"], first, ""), next];
}

function showCell(index, cells) {
  chosen = Math.max(0, Math.min(cells.length - 1, index));
  // Screen readers read it aloud on every update, so update it only when it has changed.
  const words = cells[chosen]?.words ?? "";
  if (byId("pool-cell").textContent !== words) byId("pool-cell").textContent = words;
}

function drawGrid() {
  const { pool, cells, room } = drawn;
  const nodes = [...new Set([...pool.owned.map(([node]) => node), ...pool.nodes.map((row) => row.node)])].filter((node) => node !== null).sort((one, other) => one - other);
  const each = pool.cells_each === 1 ? "one slot" : `${pool.cells_each} slots`;
  const words = `${zoom ? `slots ${zoom[0]} to ${zoom[1]} of ` : ""}${many(pool.slots, "slot")}, ${each} per cell; a number is the node that owns the cells from there on; arrow keys go from cell to cell${pool.cells_each > 1 ? ", Enter unfolds one" : ""}`;
  fill(byId("pool-grid"), legend(nodes), element("p", { class: "soft" }, words, zoom ? [" ", button("whole", "Show all slots")] : ""), gridOf(cells, room, chosen, words));
  showCell(chosen, cells);
}

function unfold(index) {
  const { pool } = drawn;
  if (pool.cells_each === 1) return;
  const first = pool.cells_first + index * pool.cells_each;
  zoom = [first, Math.min(zoom?.[1] ?? pool.slots - 1, first + pool.cells_each - 1)];
  chosen = 0;
  update(true);
}

const ask = paced(async () => {
  const asked = name;
  const width = byId("pool-grid").clientWidth || 600;
  const known = drawn?.pool.name === asked ? drawn.pool.slots : 1024;
  const room = roomFor(width, zoom ? zoom[1] - zoom[0] + 1 : known);
  try {
    const pool = await command("POOL", "SHOW", asked, "CELLS", room.cells, ...(zoom ? ["FROM", zoom[0], "TO", zoom[1]] : []));
    if (asked !== name) return;
    const shown = zoom ? zoom[1] - zoom[0] + 1 : pool.slots;
    drawn = { pool, cells: cellsOf(pool), room: { ...roomFor(width, shown), cells: room.cells } };
    fill(byId("pool-facts"), factsOf(pool));
    drawGrid();
    fill(byId("pool-sides"), sidesOf(pool));
    fill(byId("pool-labels"), ...labelsOf(pool));
    fill(byId("pool-waits"), ...waitsOf(pool));
    fill(byId("pool-taken"), ...takenOf(pool));
    showRest();
  } catch (error) {
    if (asked !== name) return;
    const gone = error.code === "NOPOOL";
    if (gone) [zoom, chosen, drawn] = [null, 0, null];
    const why = gone ? `There is no pool ${asked}. The Pools page lists all pools.`
      : error.code === "UNKNOWN" ? "The node does not answer." : [error.code, error.message].filter(Boolean).join(": ");
    fill(byId("pool-facts"), element("span", { class: "bad" }, why, drawn ? " What is shown below is older." : ""));
    showRest();
  }
});

// Shows what is below the facts once there is something to show.
function showRest() {
  if (!drawn) {
    fill(byId("pool-grid"));
    byId("pool-cell").textContent = "";
  }
  for (const section of document.querySelectorAll("[data-page=pool] > section")) {
    const labels = section.contains(byId("pool-labels"));
    section.hidden = !section.contains(byId("pool-facts")) && (!drawn || labels && !drawn.pool.labels.length);
  }
}

export function show(wanted) {
  if (wanted !== name) {
    [name, zoom, chosen, drawn] = [wanted ?? "", null, 0, null];
    fill(byId("pool-facts"));
    showRest();
  }
  fill(byId("pool-title"), link("#pools", "Pools"), " / ", name);
  ask(true);
}

export function update(now) {
  if (!name) return;
  fill(byId("pool-moves"), ...donations(name));
  ask(now);
}

const grid = byId("pool-grid");
listen(grid, { whole: () => {
  [zoom, chosen] = [null, 0];
  update(true);
} });
const cellAt = (event) => Number(event.target.closest?.("[data-cell]")?.getAttribute("data-cell") ?? -1);
grid.addEventListener("pointermove", (event) => {
  const index = cellAt(event);
  if (index >= 0 && drawn && index !== chosen) {
    chosen = index;
    drawGrid();
  }
});
grid.addEventListener("click", (event) => {
  const index = cellAt(event);
  if (index >= 0 && drawn) unfold(index);
});
grid.addEventListener("keydown", (event) => {
  if (!drawn || !event.target.closest("svg")) return;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -drawn.room.columns, ArrowDown: drawn.room.columns, Home: -Infinity, End: Infinity };
  if (event.key === "Enter") unfold(chosen);
  else if (event.key in steps) {
    showCell(chosen + steps[event.key], drawn.cells);
    drawGrid();
  } else return;
  event.preventDefault();
});
window.addEventListener("resize", () => update(true));
