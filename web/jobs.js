// The page of jobs: find, list, count, create; move, retry and delete those that are chosen.

import { command } from "./api.js";
import { byId, element, fill, link, listen, many, sure, table, tell, tellError } from "./dom.js";
import { each, moveTo, retryOne } from "./deeds.js";
import { paced } from "./pace.js";

const ROWS = 50;            // of a page
let pages = 1;              // how many are shown
let more = false;           // whether there is another
const chosen = new Set();   // ids
let rows = [];
let queues = [];            // full names

const inQueue = () => byId("jobs-in").value;

// The queues to choose from; what is chosen stays.
export function know(live) {
  const names = live.flows.flatMap((flow) => flow.queues.map((queue) => `${flow.name}/${queue.name}`));
  if (names.join() === queues.join()) return;
  queues = names;
  for (const select of document.querySelectorAll("select[data-queues]")) {
    const wanted = select.dataset.wanted || select.value;
    const first = select.dataset.queues ? [element("option", { value: "" }, select.dataset.queues)] : [];
    select.replaceChildren(...first, ...names.map((name) => element("option", { value: name }, name)));
    if (names.includes(wanted)) select.value = wanted;
  }
}

// Who comes from another page to a queue wants to see all that is in it.
export function show(queue, arrived) {
  chosen.clear();
  pages = 1;
  if (arrived && queue) byId("jobs-pattern").value = "";
  const select = byId("jobs-in");
  select.dataset.wanted = queue ?? "";
  if (queue === undefined || queues.includes(queue)) select.value = queue ?? "";
  if (queue && queues.includes(queue)) byId("create-in").value = queue;
  update(true);
}

function row(job) {
  const [id, name, queue, state, deaths] = job;
  const box = element("input", { type: "checkbox", "data-job": id, "aria-label": `choose ${name}` });
  const cells = [box, element("span", { class: "mono" }, id), link(`#job/${id}`, name), queue,
    element("span", { class: state === "waiting" ? "" : "inside" }, state), deaths];
  cells.key = String(id);
  return cells;
}

function draw() {
  const ids = new Set(rows.map(([id]) => String(id)));
  for (const id of chosen) if (!ids.has(id)) chosen.delete(id);
  const wanted = byId("jobs-pattern").value.trim();
  fill(byId("job-list"), table(["", "id", "name", "queue", "state", "deaths"], rows.map(row), wanted && wanted !== "*" ? "No job fits." : "No jobs here."),
    /^[0-9]+$/.test(wanted) ? element("p", {}, link(`#job/${wanted}`, `The job with the id ${wanted}`)) : null);
  for (const box of byId("job-list").querySelectorAll("input[type=checkbox]")) box.checked = chosen.has(box.dataset.job);
  byId("jobs-count").textContent = `${more ? `the first ${rows.length}` : many(rows.length, "job")}${chosen.size ? `, ${chosen.size} chosen` : ""}`;
  for (const deed of byId("job-deeds").querySelectorAll("button")) deed.disabled = deed.dataset.do === "all" ? rows.length === 0 : chosen.size === 0;
  byId("jobs-more").hidden = !more;
}

export const update = paced(async () => {
  const pattern = byId("jobs-pattern").value.trim() || "*";
  const where = inQueue() || byId("jobs-in").dataset.wanted;
  try {
    const found = [];
    let next = "0";
    for (let page = 0; page < pages && (page === 0 || next !== "0"); page += 1) {
      const answer = await command("JOB", "FIND", pattern, ...(where ? ["IN", where] : []), "CURSOR", next, "LIMIT", ROWS);
      next = answer[0];
      found.push(...answer[1]);
    }
    rows = found;
    more = next !== "0";
    draw();
  } catch (error) {
    rows = [];
    more = false;
    fill(byId("job-list"), element("p", { class: "bad" }, `${error.code}: ${error.message}`));
  }
});

listen(byId("job-deeds"), {
  all() {
    for (const [id] of rows) chosen.add(String(id));
    draw();
  },
  async move() {
    const to = byId("move-to").value;
    if (!to) return tell("Choose the queue that they are to go to.", true);
    if (!await sure(`Move ${many(chosen.size, "job")} to ${to}?`, "They must be waiting. Their deaths are forgotten.", "Move")) return;
    await each([...chosen], (id) => moveTo(id, to), "moved");
    update(true);
  },
  async retry() {
    if (!await sure(`Retry ${many(chosen.size, "job")}?`, "Each goes back to the queue that it was rejected from.", "Retry")) return;
    await each([...chosen], retryOne, "sent back");
    update(true);
  },
  async delete() {
    if (!await sure(`Delete ${many(chosen.size, "job")}?`, "They are gone for good, with their bodies.", "Delete")) return;
    await each([...chosen], (id) => command("JOB", "DELETE", id), "deleted");
    chosen.clear();
    update(true);
  },
});

byId("jobs-more").addEventListener("click", () => {
  pages += 1;
  update(true);
});
byId("job-list").addEventListener("change", ({ target }) => {
  if (!target.dataset.job) return;
  if (target.checked) chosen.add(target.dataset.job);
  else chosen.delete(target.dataset.job);
  draw();
});
byId("jobs-pattern").addEventListener("input", () => {
  pages = 1;
  update(true);
});
byId("jobs-in").addEventListener("change", () => {
  location.hash = inQueue() ? `#jobs/${encodeURIComponent(inQueue())}` : "#jobs";
});
byId("create-job").addEventListener("submit", async (event) => {
  event.preventDefault();
  const queue = byId("create-in").value;
  const name = byId("create-name").value.trim() || "*";
  const kind = byId("create-class").value.trim();
  try {
    const id = await command("JOB", "CREATE", queue, name, byId("create-body").value, ...(kind ? ["CLASS", kind] : []));
    tell(`Job ${id} is created in ${queue}.`);
    byId("create-name").value = "";
    update(true);
  } catch (error) {
    tellError(error);
  }
});
