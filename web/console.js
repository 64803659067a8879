// The console: pages by the part of the address behind #, renewed by the node's events.

import * as clients from "./clients.js";
import * as cluster from "./cluster.js";
import { byId, element, fill, listen, listenForMore, span } from "./dom.js";
import * as editor from "./editor.js";
import * as elections from "./elections.js";
import * as flows from "./flows.js";
import * as gates from "./gates.js";
import * as groups from "./groups.js";
import * as job from "./job.js";
import * as jobs from "./jobs.js";
import * as pool from "./pool.js";
import * as pools from "./pools.js";

let live = null;   // the last event of flows

// By name: what is done when the page comes up, and at every event.
const pages = {
  gates: { update: gates.update },
  elections: { update: elections.update },
  groups: { update: groups.update },
  pools: { update: pools.update },
  pool: { show: pool.show, update: pool.update },
  flows: { update: () => flows.updateFlows(live) },
  queues: { update: () => flows.updateQueues(live) },
  jobs: { show: jobs.show, update: jobs.update },
  job: { show: job.show, update: job.update },
  clients: { update: clients.update },
  cluster: { show: () => cluster.update(true), update: cluster.update },
  edit: { show: (name) => editor.show(name), update: () => live && editor.know(live) },
};
const titles = { gates: "Gates", elections: "Elections", groups: "Groups", pools: "Pools", pool: "Pool", flows: "Flows", queues: "Queues", jobs: "Jobs", job: "Job", clients: "Clients", cluster: "Cluster", edit: "Drawing" };
const OF_STATE = ["gates", "elections", "groups", "pools", "pool"];   // pages that the state renews, not the flows
let page = null;

// What an address says, also one that somebody typed.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function turn() {
  const [name, argument] = location.hash.slice(1).split("/");
  const before = page;
  page = pages[name] ? name : "gates";
  for (const section of document.querySelectorAll("main > [data-page]")) section.hidden = section.dataset.page !== page;
  const shown = { job: "jobs", pool: "pools", edit: "flows" }[page] ?? page;
  for (const one of document.querySelectorAll("nav a")) {
    if (one.hash === `#${shown}`) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  document.title = `${titles[page]} – Testigo`;
  pages[page].show?.(argument === undefined ? undefined : decoded(argument), page !== before);
  pages[page].update();
}

// Who is in a cluster and has not said what it has.
function showMissing(missing) {
  const nodes = missing.map((id) => `node ${id}`).join(" and ");
  byId("missing").hidden = missing.length === 0;
  byId("missing").textContent = `${nodes} did not answer; ${missing.length > 1 ? "their" : "its"} gates, slots, sessions and clients are missing, and jobs in hand of ${missing.length > 1 ? "their" : "its"} queues count as waiting`;
}

function status(state) {
  const node = byId("status");
  const self = state.node === undefined ? "" : `node ${state.node}, `;
  node.className = state.recovering ? "bad" : "";
  // What is always changing is not read aloud.
  fill(node, ...(state.recovering
    ? [`recovering: ${state.everything_waits ? "no gate grants" : "some gates do not grant"} until ${state.awaited} earlier sessions have resumed, closed or run out (start ${state.start})`]
    : [`${self}start ${state.start}, `, element("span", { "aria-live": "off" }, `up for ${span(state.now_ms)}`), `, version ${state.version}`]));
}

const events = new EventSource("/api/events");
events.addEventListener("state", (event) => {
  const state = JSON.parse(event.data);
  // The node has too much to do; the next one may come.
  if (!state) return;
  status(state);
  showMissing(state.missing ?? []);
  gates.take(state);
  elections.take(state);
  groups.take(state);
  pools.take(state);
  if (OF_STATE.includes(page)) pages[page].update();
  if (page === "cluster") cluster.update();
});
events.addEventListener("flows", (event) => {
  const flows = JSON.parse(event.data);
  if (!flows) return;
  live = flows;
  jobs.know(live);
  if (!OF_STATE.includes(page)) pages[page].update();
});
events.addEventListener("error", () => {
  byId("status").className = "bad";
  byId("status").textContent = "the node does not answer; trying again …";
});
listen(byId("news"), { hush: () => { byId("news").hidden = true; } });
listenForMore(() => pages[page].update(true));
byId("queue-filter").addEventListener("input", () => flows.updateQueues(live));
window.addEventListener("hashchange", turn);
turn();
