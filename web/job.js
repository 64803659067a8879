// The page of one job: where it is, who holds it, its body, and its whole history.

import { bodyOf, command } from "./api.js";
import { each, moveTo, retryOne } from "./deeds.js";
import { byId, button, element, fill, link, listen, moment, span, sure, table, tell } from "./dom.js";
import { paced } from "./pace.js";

const BODY_SHOWN = 20000;
let id = null;
let known = null;

export function show(wanted) {
  id = wanted;
  known = null;
  fill(byId("job-page"), element("p", { class: "empty" }, "asking …"));
  update(true);
}

function facts(job) {
  const fact = (name, value) => value === "" || value === null ? [] : [element("dt", {}, name), element("dd", {}, value)];
  return element("dl", { class: "facts" },
    fact("id", String(job.id)),
    fact("queue", link(`#jobs/${encodeURIComponent(job.queue)}`, job.queue)),
    fact("state", job.state === "waiting" ? "waiting" : `${job.state}${job.held_ms === null ? "" : ` since ${span(job.held_ms)}`}${job.session === null ? "" : ` by session ${job.session}`}`),
    fact("deaths", String(job.deaths)),
    fact("rejected from", job.rejected_from),
    fact("class", String(job.class)),
    fact("created", `${moment(job.created)} by ${job.creator}`),
    fact("in this queue since", moment(job.arrived)));
}

function history(job) {
  const hop = (one) => [one.queue, moment(one.arrived), span(one.left - one.arrived), one.held_ms ? span(one.held_ms) : "–", one.by || "the node: rejected", moment(one.left)];
  const now = [job.queue, moment(job.arrived), span(Math.max(0, Date.now() - job.arrived)), job.held_ms === null ? "–" : span(job.held_ms),
    job.state === "waiting" ? "–" : job.state, "still there"];
  return table(["queue", "came", "stayed", "of that in hand", "sent on by", "left"], [...job.hops.map(hop), now], "");
}

function body(job) {
  const { text, bytes, isText } = bodyOf(job.body);
  const cut = text.length > BODY_SHOWN;
  return element("div", {}, element("p", { class: "soft" }, `${bytes} bytes${isText ? "" : ", not text, shown as numbers"}${cut ? ", cut here" : ""}`),
    bytes ? element("pre", {}, cut ? `${text.slice(0, BODY_SHOWN)} …` : text) : null);
}

function draw(job) {
  fill(byId("job-page"),
    element("div", { class: "title" }, element("h2", {}, `Job ${job.name}`),
      element("span", { class: "row" },
        job.rejected_from === null ? null : button("retry", `Retry in ${job.rejected_from}`),
        button("delete", "Delete", { class: "danger" }))),
    facts(job),
    element("h3", {}, "Body"), body(job),
    element("h3", {}, "History"), history(job));
}

export const update = paced(async () => {
  if (id === null) return;
  const wanted = id;
  try {
    known = await command("JOB", "SHOW", wanted);
    if (wanted === id) draw(known);
  } catch (error) {
    if (wanted === id) {
      known = null;
      fill(byId("job-page"), element("h2", {}, `Job ${wanted}`),
        element("p", { class: error.code === "NOJOB" ? "empty" : "bad" }, error.code === "NOJOB" ? "There is no such job, or no longer: it was deleted." : `${error.code}: ${error.message}`));
    }
  }
  byId("job-move").hidden = known === null;
});

listen(byId("job-page"), {
  async retry() {
    if (!await sure(`Retry the job ${known.name}?`, `It goes back to ${known.rejected_from}; its deaths are forgotten.`, "Retry")) return;
    await each([id], retryOne, "sent back");
    update(true);
  },
  async delete() {
    if (!await sure(`Delete the job ${known.name}?`, "It is gone for good, with its body.", "Delete")) return;
    await each([id], (job) => command("JOB", "DELETE", job), "deleted");
    update(true);
  },
});
listen(byId("job-move"), {
  async move() {
    const to = byId("job-move-to").value;
    if (!to) return tell("Choose the queue that it is to go to.", true);
    if (!await sure(`Move the job ${known.name} to ${to}?`, "It must be waiting. Its deaths are forgotten.", "Move")) return;
    await each([id], (job) => moveTo(job, to), "moved");
    update(true);
  },
});
