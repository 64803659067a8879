// The pages of flows and of queues: every flow as it runs, and all queues in one table.

import { command, draw } from "./api.js";
import { byId, button, element, fill, link, listen, many, rate, span, sure, table, tell, tellError } from "./dom.js";
import { livePicture } from "./picture.js";

const pictures = new Map();   // by name: { mark, picture } or { mark, why }

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
  const sum = (field) => flow.queues.reduce((all, queue) => all + queue[field], 0);
  const clients = flow.processes.reduce((all, process) => all + process.clients, 0);
  return `${many(sum("waiting"), "job")} waiting, ${sum("held")} held, ${many(clients, "client")}`;
}

function card(flow) {
  const known = pictures.get(flow.name);
  if (!known || known.mark !== flow.mark) learn(flow);
  const full = flow.queues.filter((queue) => queue.limit !== null && queue.waiting + queue.held >= queue.limit);
  const drawn = known?.picture ? livePicture(known.picture, flow, byId("flow-list").clientWidth - 4)
    : element("p", { class: "empty" }, known?.why ?? "drawing …");
  return element("article", { class: "card", "data-key": flow.name, "data-flow": flow.name },
    element("header", {},
      element("h3", {}, flow.name),
      element("span", { class: "soft" }, jobsOf(flow)),
      full.length ? element("span", { class: "pressed" }, `full: ${full.map((queue) => queue.name).join(", ")}`) : null,
      element("span", { class: "row push" },
        link(`#edit/${encodeURIComponent(flow.name)}`, "Edit", { class: "button" }),
        button("delete-flow", "Delete", { "data-flow": flow.name, class: "danger" }))),
    drawn);
}

export function updateFlows(live) {
  if (!live) return;
  for (const name of pictures.keys()) if (!live.flows.some((flow) => flow.name === name)) pictures.delete(name);
  const more = live.more ? element("p", { class: "soft" }, `and ${many(live.more, "flow")} more; testigo flow list has all`) : null;
  fill(byId("flow-list"), live.flows.length ? live.flows.map(card)
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
  const rows = shown.map((queue) => {
    const isFull = queue.limit !== null && queue.waiting + queue.held >= queue.limit;
    const row = [link(`#jobs/${encodeURIComponent(queue.full)}`, queue.full), ...(clustered ? [`node ${queue.owner}`] : []), queue.waiting, queue.held,
      isFull ? element("span", { class: "pressed" }, `${queue.limit}, full`) : queue.limit ?? "none",
      queue.age_ms === null ? "–" : span(queue.age_ms),
      ...(rates ? [rate(queue.arrivals_per_second), rate(queue.departures_per_second)] : []),
      queue.takers, queue.retries, queue.reject ?? "none"];
    row.key = queue.full;
    return row;
  });
  fill(byId("queue-list"), table(heads, rows, wanted ? "No queue fits." : "No queues: there is no flow."));
}

listen(byId("flow-list"), {
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
