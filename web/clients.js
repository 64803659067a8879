// The page of clients: who works as which process on which machine, what they hold and since when.

import { command } from "./api.js";
import { byId, button, element, fill, link, listen, many, page, span, sure, table, tell, tellError } from "./dom.js";
import { paced } from "./pace.js";

let clients = [];

// In a cluster the number of the node is in a client's id, above these.
const OWN = 2 ** 44;
const nameOf = (client) => client.node === undefined ? String(client.id) : `${client.id % OWN} at node ${client.node}`;
const processOf = (client) => client.process ? `${client.flow}/${client.process}` : "no process";

function holds(client) {
  if (!client.jobs.length) return client.waits ? "waits for a job" : "nothing";
  return client.jobs.map((job) => element("div", {},
    link(`#job/${job.id}`, job.name), ` of ${job.queue}, for ${span(job.held_ms)}`));
}

function show() {
  const by = document.querySelector("input[name=clients-by]:checked").value;
  const groups = new Map();
  for (const client of clients) {
    const name = by === "machine" ? client.machine : processOf(client);
    groups.set(name, [...(groups.get(name) ?? []), client]);
  }
  const sorted = [...groups].sort(([one], [other]) => one.localeCompare(other));
  const heads = ["client", by === "machine" ? "process" : "machine", "name", "connected", "holds", ""];
  fill(byId("client-list"), sorted.map(([name, group]) => {
    const [first, next] = page(`clients of ${by} ${name}`, group);
    const rows = first.map((client) => {
      const row = [element("span", { class: "mono" }, nameOf(client)), by === "machine" ? processOf(client) : `${client.machine} (${client.address})`,
        client.name || "–", span(client.connected_ms), holds(client),
        button("end", "End", { "data-client": client.id, "data-who": `${processOf(client)}, client ${nameOf(client)}`, class: "danger" })];
      row.key = String(client.id);
      return row;
    });
    return element("article", { class: "card", "data-key": `${by} ${name}`, "data-group": name },
      element("header", {}, element("h3", {}, name), element("span", { class: "soft" }, many(group.length, "client")),
        by === "machine" ? element("span", { class: "row push" },
          button("end-machine", "End all of this machine", { "data-machine": name, "data-count": group.length, class: "danger" })) : null),
      table(heads, rows, ""), next);
  }), sorted.length ? null : element("p", { class: "empty" }, "Nobody works. Try: testigo work FLOW PROCESS -- COMMAND"));
}

export const update = paced(async () => {
  try {
    clients = await command("FLOW", "CLIENTS");
    show();
  } catch (error) {
    fill(byId("client-list"), element("p", { class: "bad" }, `${error.code}: ${error.message}`));
  }
});

async function end(words, question, consequence) {
  if (!await sure(question, consequence, "End")) return;
  try {
    tell(`${many(await command("CLIENT", "END", ...words), "client")} ended.`);
    update(true);
  } catch (error) {
    tellError(error);
  }
}

listen(byId("client-list"), {
  end: ({ client, who }) => end([client], `End ${who}?`, "Its connection is closed, and the jobs that it holds wait again, a death each."),
  "end-machine": ({ machine, count }) => end(["MACHINE", machine], `End all ${count} of ${machine}?`,
    "Their connections are closed, and the jobs that they hold wait again, a death each."),
});
for (const choice of document.querySelectorAll("input[name=clients-by]")) choice.addEventListener("change", show);
