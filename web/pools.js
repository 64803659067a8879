// The page of all pools: what each node has, and the latest donations.

import { byId, element, fill, link, many, page, short, span, table } from "./dom.js";
import { barOf, freeLowWords, legend, ownerClass, ownerName, ownerNames, partWords } from "./slots.js";

let latest = null;      // the last state

const sum = (rows, name) => rows.reduce((all, row) => all + row[name], 0);

// What each owner has, according to the nodes that answered; the rest belongs to those that did not.
function partsOf(pool) {
  const nodes = [...pool.nodes].sort((one, other) => one.node - other.node);
  const parts = nodes.map((node) => ({ node: node.node, slots: node.owned, used: node.owned - node.free, withheld: node.withheld }));
  parts.push(...pool.out_of_reach.map((absent) => ({ node: absent.node, slots: absent.slots, used: 0, withheld: 0, unknown: "out of reach" })));
  const left = pool.slots - sum(parts, "slots");
  if (left > 0) parts.push({ node: null, name: "other nodes", slots: left, used: 0, withheld: 0, unknown: "not known here" });
  return parts.filter((part) => part.slots > 0);
}

function poolWords(pool) {
  const words = [many(pool.slots, pool.named ? "named slot" : "slot"), `${sum(pool.nodes, "free")} free`, `${sum(pool.nodes, "used") - sum(pool.nodes, "withheld")} used`];
  const [withheld, waiting, absent] = [sum(pool.nodes, "withheld"), sum(pool.nodes, "waiting"), sum(pool.out_of_reach, "slots")];
  const left = pool.slots - sum(pool.nodes, "owned") - absent;
  if (withheld) words.push(`${withheld} withheld`);
  if (absent) words.push(`${absent} out of reach with ${ownerNames(pool.out_of_reach.filter((node) => node.slots).map((node) => node.node))}`);
  if (left > 0) words.push(`${left} of other nodes`);
  if (waiting) words.push(`${waiting} waiting`);
  return [words.join(", "), ...freeLowWords(pool.free_low)].join("; ");
}

// How many slots each owner has, in the order of the bar above.
const shares = (parts) => element("ul", { class: "travel-nodes" }, ...parts.map((part) => element("li", { class: "travel-node", title: partWords(part) },
  element("b", { class: ownerClass(part.node) }, part.name ?? ownerName(part.node)), element("span", {}, `${part.slots}${part.unknown ? `, ${part.unknown}` : ""}`))));

// Donations of one pool, or of all pools.
export function donations(name) {
  const rows = (latest?.donations ?? []).filter((donation) => name === undefined || donation.pool === name);
  const [first, next] = page(`donations of ${name ?? ""}`, rows, 20);
  const cells = first.map((donation) => [short(`${span(latest.now_ms - donation.at)} ago`), ...(name === undefined ? [donation.pool] : []),
    short(`${ownerName(donation.from)} → ${ownerName(donation.to)}`), short(many(donation.slots, "slot"))]);
  return [table(["when", ...(name === undefined ? ["pool"] : []), "donor → receiver", "slots"], cells, "No donation since this node started."), next];
}

export function take(state) {
  latest = state;
}

export function update() {
  if (!latest) return;
  const wanted = byId("pool-filter").value.trim();
  const pools = latest.pools.filter((pool) => pool.name.includes(wanted));
  const [first, next] = page("pools", pools, 20);
  const cards = first.map((pool) => element("article", { class: "gate", "data-key": pool.name, "data-pool": pool.name },
    element("header", {}, element("h3", {}, link(`#pool/${encodeURIComponent(pool.name)}`, pool.name)), element("span", { class: "what" }, poolWords(pool))),
    element("div", { class: "slot-bars" }, barOf(partsOf(pool)), shares(partsOf(pool)))));
  const more = latest.pools_more ? [element("p", { class: "soft" }, `and ${latest.pools_more} more; filter or use testigo pool list`)] : [];
  const none = wanted && latest.pools.length ? `No pool has ${wanted} in its name.` : "No pools. Try: testigo pool create ports --slots 100";
  fill(byId("pool-list"), ...(cards.length ? [legend([]), ...cards, next] : [element("p", { class: "empty" }, none)]), ...more);
  fill(byId("pool-donations"), ...donations());
}

byId("pool-filter").addEventListener("input", update);
