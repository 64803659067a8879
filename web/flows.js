// The pages of flows and of queues: every flow as it runs, and all queues in one table.

import { command, draw } from "./api.js";
import { brief, byId, button, element, fill, link, listen, many, page, rate, span, sure, table, tell, tellError } from "./dom.js";
import { livePicture, smallestWidth } from "./picture.js";

const pictures = new Map();   // by name: { mark, picture } or { mark, why }
const fitted = new Set();     // names of flows whose whole picture is shown, however small
const FLOWS = 10;             // of a page

const waitingIn = (flow) => flow.queues.reduce((all, queue) => all + queue.waiting, 0);
const fullOf = (flow) => flow.queues.filter((queue) => queue.limit !== null && queue.waiting + queue.held >= queue.limit);

// The picture belongs to the text, so it is asked for once a text.
async function learn(flow) {
  const entry = { mark: flow.mark };
  pictures.set(flow.name, entry);
  try {
    const { text } = await command("FLOW", "SHOW", flow.name);
    entry.picture = (await draw(text)).drawing;
  } catch (error) {
    entry.why = error.message;
  }
}

function jobsOf(flow) {
  const held = flow.queues.reduce((all, queue) => all + queue.held, 0);
  const clients = flow.processes.reduce((all, process) => all + process.clients, 0);
  const words = (number) => `${number(waitingIn(flow))} ${waitingIn(flow) === 1 ? "job" : "jobs"} waiting, ${number(held)} held, ${many(clients, "client")}`;
  return element("span", { class: "soft", title: words(String) }, words(brief));
}

function card(flow) {
  const known = pictures.get(flow.name);
  if (!known || known.mark !== flow.mark) learn(flow);
  const full = fullOf(flow);
  const room = byId("flow-list").clientWidth - 4;
  const wide = known?.picture && smallestWidth(known.picture) > room;
  const drawn = known?.picture ? livePicture(known.picture, flow, room, fitted.has(flow.name))
    : element("p", { class: "empty" }, known?.why ?? "drawing …");
  return element("article", { class: "card", "data-key": flow.name, "data-flow": flow.name },
    element("header", {},
      element("h3", {}, flow.name),
      jobsOf(flow),
      full.length ? element("span", { class: "pressed" }, `full: ${full.map((queue) => queue.name).join(", ")}`) : null,
      element("span", { class: "row push" },
        wide ? button("fit", "Fit", { "data-flow": flow.name, "aria-pressed": String(fitted.has(flow.name)), title: "show the whole picture" }) : null,
        link(`#edit/${encodeURIComponent(flow.name)}`, "Edit", { class: "button" }),
        button("delete-flow", "Delete", { "data-flow": flow.name, class: "danger" }))),
    drawn);
}

let latest = null;

export function updateFlows(live) {
  if (!live) return;
  latest = live;
  for (const name of pictures.keys()) if (!live.flows.some((flow) => flow.name === name)) pictures.delete(name);
  const more = live.more ? element("p", { class: "soft" }, `and ${many(live.more, "flow")} more; testigo flow list has all`) : null;
  const [first, next] = page("flows", live.flows, FLOWS);
  fill(byId("flow-index"), live.flows.length > 1 ? page("names of flows", live.flows, 40).flat().map((flow) => !flow?.name ? flow
    : button("to-flow", [flow.name, element("span", { class: fullOf(flow).length ? "pressed" : "soft", title: `${waitingIn(flow)} waiting` },
      ` ${fullOf(flow).length ? "full" : brief(waitingIn(flow))}`)], { "data-key": flow.name, "data-flow": flow.name })) : null);
  fill(byId("flow-list"), live.flows.length ? [first.map(card), next]
    : element("p", { class: "empty" }, "No flows yet. Draw one, or try: testigo flow apply orders orders.flow"), more);
}

export function updateQueues(live) {
  if (!live) return;
  const wanted = byId("queue-filter").value.trim();
  const queues = live.flows.flatMap((flow) => flow.queues.map((queue) => ({ ...queue, full: `${flow.name}/${queue.name}` })));
  const shown = queues.filter((queue) => queue.full.includes(wanted));
  const rates = shown.some((queue) => queue.arrivals_per_second !== undefined);
  const clustered = shown.some((queue) => queue.owner !== undefined);
  const heads = ["queue", ...(clustered ? ["owner"] : []), "waiting", "held", "limit", "age of the next", ...(rates ? ["in", "out"] : []), "takers", "retries", "reject queue"];
  const [first, next] = page("queues", shown);
  const rows = first.map((queue) => {
    const isFull = queue.limit !== null && queue.waiting + queue.held >= queue.limit;
    const row = [link(`#jobs/${encodeURIComponent(queue.full)}`, queue.full), ...(clustered ? [`node ${queue.owner}`] : []), queue.waiting, queue.held,
      isFull ? element("span", { class: "pressed" }, `${queue.limit}, full`) : queue.limit ?? "none",
      queue.age_ms === null ? "–" : span(queue.age_ms),
      ...(rates ? [rate(queue.arrivals_per_second), rate(queue.departures_per_second)] : []),
      queue.takers, queue.retries, queue.reject ?? "none"];
    row.key = queue.full;
    return row;
  });
  fill(byId("queue-list"), table(heads, rows, wanted ? "No queue fits." : "No queues: there is no flow."), next);
}

listen(byId("flow-index"), {
  "to-flow"({ flow }) {
    const there = () => byId("flow-list").querySelector(`article[data-flow="${CSS.escape(flow)}"]`);
    if (!there()) {
      // Further down than what is shown.
      byId("flow-list").querySelector("[data-do=show-more]")?.click();
    }
    there()?.scrollIntoView({ block: "start" });
  },
});
listen(byId("flow-list"), {
  fit({ flow }) {
    if (!fitted.delete(flow)) fitted.add(flow);
    updateFlows(latest);
  },
  async "delete-flow"({ flow }) {
    if (!await sure(`Delete the flow ${flow}?`, "It must have no jobs. Its text is lost.", "Delete the flow")) return;
    try {
      await command("FLOW", "DELETE", flow);
      tell(`The flow ${flow} is deleted.`);
    } catch (error) {
      tellError(error);
    }
  },
});
