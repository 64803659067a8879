// Draws slots: owners by colour and number; used slots solid, free ones hollow, unknown ones hatched.

import { element, many, svg } from "./dom.js";

export const ownerClass = (node) => node === null ? "nobody" : `owner-${(node - 1) % 8}`;
export const ownerName = (node) => node === null ? "nobody" : `node ${node}`;
export const ownerNames = (nodes) => nodes.map(ownerName).join(" and ");

// When a node asks the others for slots before anybody waits; nothing if it never does.
export const freeLowWords = (low) => low === 0 ? [] : [`a node with ${low === 1 ? "none" : `fewer than ${low}`} free asks the others`];

// One owner's part of a box: hollow, filled from below as far as it is used, hatched if who uses it, or whether, is unknown.
function partOf(part, x, y, width, height) {
  const rect = (from, to, kind) => to <= from ? null : svg("rect", { x: x.toFixed(2), y: (y + height * (1 - to)).toFixed(2), width: width.toFixed(2),
    height: (height * (to - from)).toFixed(2), class: kind });
  const owner = ownerClass(part.node);
  if (part.unknown) return [rect(0, 1, `slot-free ${owner}`), rect(0, 1, "slot-unknown")];
  return [rect(0, 1, `slot-free ${owner}`), rect(0, part.used / part.slots, `slot-used ${owner}`), rect(0, part.withheld / part.slots, "slot-unknown")];
}

// Parts side by side, each as wide as its share of the slots.
export function boxOf(parts, x, y, width, height) {
  const all = parts.reduce((sum, part) => sum + part.slots, 0);
  let at = x;
  return parts.flatMap((part) => {
    const wide = width * part.slots / all;
    at += wide;
    return partOf(part, at - wide, y, wide, height);
  });
}

// A part belongs to a node, or to `name` if given; `unknown` says why nobody here knows how much of it is used.
export function partWords(part) {
  const name = part.name ?? ownerName(part.node);
  if (part.slots === 1) return `${name}, ${part.unknown ?? (part.withheld ? "withheld" : part.used ? "used" : "free")}`;
  const of = `${many(part.slots, "slot")} of ${name}`;
  if (part.unknown) return `${of}, ${part.unknown}`;
  return `${of}, ${part.used - part.withheld} used${part.withheld ? `, ${part.withheld} withheld` : ""}, ${part.slots - part.used} free`;
}

// A bar of the whole pool; its label says what it shows.
export const barOf = (parts) => svg("svg", { class: "slot-bar", viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img", "aria-label": parts.map(partWords).join("; ") },
  ...boxOf(parts, 0, 0, 1000, 14));

const GAP = 3;
const ROWS = 16;

// How many cells fit, and how large they are.
export function roomFor(width, slots) {
  const size = slots <= 100 ? 30 : 17;
  const columns = Math.max(4, Math.floor(width / (size + GAP)));
  return { width, size, columns, cells: Math.min(1024, columns * ROWS) };
}

// The cells in rows. The first cell of a run with one owner has the owner's number.
export function gridOf(cells, room, chosen, words) {
  const pitch = room.size + GAP;
  const columns = Math.min(room.columns, cells.length);
  let before;
  const drawn = cells.map((cell, index) => {
    const [x, y] = [(index % columns) * pitch + 1, Math.floor(index / columns) * pitch + 1];
    const only = cell.parts.length === 1 ? cell.parts[0].node : undefined;
    const number = only !== undefined && only !== null && (only !== before || index % columns === 0) ? only : null;
    before = only;
    const solid = cell.parts.length === 1 && cell.parts[0].used * 2 > cell.parts[0].slots;
    return svg("g", { "data-cell": index, class: index === chosen ? "chosen" : null }, svg("title", {}, cell.words),
      ...boxOf(cell.parts, x, y, room.size, room.size),
      svg("rect", { x, y, width: room.size, height: room.size, class: "slot-edge" }),
      number === null ? null : svg("text", { x: x + room.size / 2, y: y + room.size / 2, class: solid ? "on-solid" : null }, number));
  });
  const [width, height] = [columns * pitch + 1, Math.ceil(cells.length / columns) * pitch + 1];
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "slots", tabindex: 0, role: "group", "aria-label": words, "aria-describedby": "pool-cell", "data-width": room.width }, ...drawn);
}

// What the looks mean.
export function legend(nodes) {
  const sample = (parts) => svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", class: "slots", "aria-hidden": "true" }, ...boxOf(parts, 1, 1, 14, 14),
    svg("rect", { x: 1, y: 1, width: 14, height: 14, class: "slot-edge" }));
  const one = (part, words) => element("li", {}, sample([{ slots: 1, used: 0, withheld: 0, ...part }]), ` ${words}`);
  return element("ul", { class: "legend" }, ...nodes.map((node) => one({ node, used: 0.5 }, ownerName(node))),
    one({ node: null, used: 1 }, "solid: used"), one({ node: null }, "hollow: free"), one({ node: null, unknown: "out of reach" }, "hatched: out of reach or withheld; may be in use"));
}
