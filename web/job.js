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

// A queue that is gone has no name any more, but words.
const queueLives = (name) => name && !name.includes(" ");

function facts(job) {
  const fact = (name, value) => value === "" || value === null || value === undefined ? [] : [element("dt", {}, name), element("dd", {}, value)];
  const hands = job.state === "waiting" || job.state === "ended" ? ""
    : `${job.held_ms === null ? "" : ` for ${span(job.held_ms)}`}${job.by ? ` by ${job.by}` : job.session ? ` by session ${job.session}` : ""}`;
  return element("dl", { class: "facts" },
    fact("id", String(job.id)),
    fact(job.ended ? "last queue" : "queue", queueLives(job.queue) ? link(`#jobs/${encodeURIComponent(job.queue)}`, job.queue) : job.queue),
    fact("state", `${job.state}${hands}`),
    fact("deaths", String(job.deaths)),
    fact("rejected from", job.rejected_from),
    fact("class", job.class === undefined ? null : String(job.class)),
    fact("created", `${moment(job.created)} by ${job.creator}`),
    fact("in this queue since", job.arrived === undefined ? null : moment(job.arrived)),
    fact("ended", job.ended ? `${moment(job.ended)}, ${span(job.life_ms)} after it was created` : null));
}

// Every hop as a row: from the history, or from the job itself where the node keeps no more of it.
function history(job) {
  const hop = (one) => one.since === undefined
    ? [one.queue, moment(one.arrived), span(one.left - one.arrived - one.held_ms), one.held_ms ? span(one.held_ms) : "–", one.by || "the node", one.by && !one.by.startsWith("lost by ") ? "sent on" : "rejected", moment(one.left)]
    : [one.queue, moment(one.since), span(one.waited_ms), one.taken === null ? "–" : span(one.held_ms), one.by || "the node", one.how, moment(one.until)];
  const last = job.hops.at(-1);
  const since = job.arrived ?? last?.until ?? last?.left ?? job.created;
  const now = job.ended ? [] : [[job.queue, moment(since), span(Math.max(0, Date.now() - since - (job.held_ms ?? 0))), job.held_ms === null ? "–" : span(job.held_ms),
    job.by ?? "–", "still there", "–"]];
  return table(["queue", "came", "waited", "in hand", "by", "what", "left"], [...job.hops.map(hop), ...now], "");
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
        queueLives(job.rejected_from) ? button("retry", `Retry in ${job.rejected_from}`) : null,
        job.ended ? null : button("delete", "Delete", { class: "danger" }))),
    facts(job),
    ...(job.body === undefined ? [] : [element("h3", {}, "Body"), body(job)]),
    element("h3", {}, "History"), history(job));
}

// What there is to know of a job, also of one that has ended while the node remembers it.
async function ask(wanted) {
  const known = async (word) => {
    try {
      return await command("JOB", word, wanted);
    } catch (error) {
      return error;
    }
  };
  const [job, past] = [await known("SHOW"), await known("HISTORY")];
  if (past instanceof Error) {
    if (job instanceof Error) throw job;
    return job;
  }
  return job instanceof Error ? past : { ...job, by: past.by, hops: past.hops };
}

export const update = paced(async () => {
  if (id === null) return;
  const wanted = id;
  try {
    const job = await ask(wanted);
    if (wanted !== id) return;
    known = job;
    draw(job);
  } catch (error) {
    if (wanted !== id) return;
    known = null;
    fill(byId("job-page"), element("h2", {}, `Job ${wanted}`),
      element("p", { class: error.code === "NOJOB" ? "empty" : "bad" }, error.code === "NOJOB" ? "There is no such job, or no longer: it was deleted." : `${error.code}: ${error.message}`));
  }
  byId("job-move").hidden = known === null || Boolean(known.ended);
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
