// The page of the cluster: who is in, who leads, what still waits for whom after a node was lost, who owns what and how that
// moved, and whose lease runs out. Any node has it.

import { command } from "./api.js";
import { byId, button, element, fill, listen, many, moment, page, span, sure, table, tell, tellError } from "./dom.js";
import { paced } from "./pace.js";

const SHARDS = 65536;

const share = (shards) => `${shards} (${(100 * shards / SHARDS).toFixed(shards && shards < 656 ? 2 : 0)} %)`;
const nodeName = (id) => id === null || id === undefined ? "nobody" : `node ${id}`;

const leaseBar = (left, whole) => element("meter", { class: "lease", min: 0, max: whole, low: whole / 3, optimum: whole, value: left,
  "aria-label": `lease: ${span(left)} left of ${span(whole)}` });

function leaseOf(status) {
  if (status.lease_ms === null) return "alone: it needs none";
  if (status.lease_ms === 0) return element("span", { class: "bad" }, "over: this node does not hear from a majority and grants nothing");
  return [leaseBar(status.lease_ms, status.lease_whole_ms), ` ${span(status.lease_ms)} left of ${span(status.lease_whole_ms)}`];
}

function linkOf(member, status) {
  if (member.link === "self") return "this node";
  if (member.link === "silent") {
    const whole = status.lease_whole_ms ?? 0;
    return element("span", { class: member.silent_ms > whole / 3 ? "bad" : "warning" },
      `silent for ${span(member.silent_ms)}`, whole && member.silent_ms < whole ? `; left out in ${span(whole - member.silent_ms)} at the earliest` : "");
  }
  return member.link === "up" ? "up" : "–";
}

function roleOf(member) {
  const words = [member.role];
  if (member.leader) words.push("leader");
  if (!member.in_view) words.push(member.role === "learner" ? "catching up" : "not in the view");
  return element("span", { class: member.in_view ? null : "bad" }, words.join(", "));
}

function leaderOf(status) {
  if (status.leader !== null) return `node ${status.leader}, term ${status.term}`;
  if (!status.cluster) return "none needed";
  return element("span", { class: "bad" }, status.last_leader === null ? "none known" : `none known; the last one was node ${status.last_leader}`);
}

// Whom the new owner of shards waits for.
function awaited(wait) {
  const whom = [];
  if (wait.members.length) whom.push(`the ${wait.members.length === 1 ? "report" : "reports"} of ${wait.members.map(nodeName).join(", ")}`);
  if (wait.orphans) whom.push(`${many(wait.orphans, "session")} whose home is lost`);
  return whom.join(" and ");
}

function showWaits(waits) {
  const none = waits.length ? null : element("p", { class: "empty" }, "Nothing: every shard is open.");
  fill(byId("cluster-waits"), none, waits.map((wait) => {
    const rows = wait.sessions.map((session) => {
      const row = [element("span", { class: "mono" }, session.session), session.label ?? "–", session.user ?? "–", nodeName(session.home),
        session.left_ms ? `${span(session.left_ms)} of ${span(session.ttl_ms)}` : "it is about to end",
        button("end-session", "End", { "data-session": session.session, "data-label": session.label ?? "", class: "danger" })];
      row.key = String(session.session);
      return row;
    });
    const more = wait.orphans > rows.length ? element("p", { class: "soft" }, `Those with the most time left of ${wait.orphans}.`) : null;
    return element("article", { class: "card", "data-key": `${wait.node} ${wait.change}`, "data-wait": wait.node },
      element("p", { class: "warning" }, `Node ${wait.node} does not open ${many(wait.shards, "shard")} yet, for ${span(wait.waits_ms)}: it waits for ${awaited(wait)}.`),
      rows.length ? table(["session", "label", "user", "its home was", "time left", ""], rows, "") : null, more);
  }));
}

async function endSession({ session, label }) {
  const who = label ? `session ${session}, ${label}` : `session ${session}`;
  if (!await sure(`End ${who}?`, "What it holds is granted to those who wait. Its process, if it still runs, has lost it.", "End")) return;
  try {
    await command("SESSION", "END", session);
    tell(`Session ${session} ended.`);
    updateWaits(true);
  } catch (error) {
    tellError(error);
  }
}

function showStatus(status) {
  fill(byId("cluster-facts"),
    element("dt", {}, "seen by"), element("dd", {}, `node ${status.id}, start ${status.start}`),
    element("dt", {}, "cluster"), element("dd", { class: "mono" }, status.cluster ?? "none: this node was started without --peer"),
    element("dt", {}, "leader"), element("dd", {}, leaderOf(status)),
    element("dt", {}, "lease"), element("dd", {}, leaseOf(status)),
    element("dt", {}, "log"), element("dd", {}, `applied up to ${status.applied}, view ${status.view}, generation ${status.generation}`),
    element("dt", {}, "shard numbers"), element("dd", {}, `highest ${status.number} of ${status.number_max}`),
    status.orphans ? [element("dt", {}, "orphans"), element("dd", { class: "warning" }, `${many(status.orphans, "session")} whose home is lost; each resumes elsewhere or runs out`)] : null);
  const rows = status.members.map((member) => {
    const row = [element("b", {}, `node ${member.id}`), roleOf(member), linkOf(member, status), share(member.shards), member.sessions,
      member.start ?? "–", member.address ?? "–", member.client ?? "–"];
    row.key = String(member.id);
    return row;
  });
  fill(byId("cluster-members"), table(["node", "role", "link", "shards", "sessions", "start", "peers reach it at", "clients reach it at"], rows, "Nobody."));
  const moves = status.moves.map((move) => [moment(move.at), `${nodeName(move.from)} → node ${move.to}`, many(move.shards, "shard"), move.number,
    move.by === "view" ? "somebody came or left" : "followed use, or was handed over"]);
  fill(byId("cluster-moves"), table(["when", "giver → taker", "shards", "number", "why"], moves, "Nothing has moved since this node started."));
}

function showOwners(owners) {
  const [first, next] = page("owners", owners);
  const rows = first.map((owner) => {
    const row = [element("b", {}, owner.name), owner.kind, nodeName(owner.owner), owner.number, owner.shard,
      owner.open ? "yes" : element("span", { class: "warning" }, "not yet: its new owner waits for reports")];
    row.key = `${owner.kind} ${owner.name}`;
    return row;
  });
  fill(byId("cluster-owners"), table(["name", "what", "owner", "number", "shard", "grants"], rows, byId("owner-filter").value
    ? "No gate and no queue has such a name." : "No gate was created and no flow runs. Implicit gates are not on record; ask for one with: testigo owner NAME"), next);
}

// Whoever is silent is waited for, which takes a second: the rest of the page does not wait for that.
const updateWaits = paced(async () => {
  try {
    showWaits(await command("CLUSTER", "WAITS"));
  } catch (error) {
    fill(byId("cluster-waits"), element("p", { class: "bad" }, `${error.code}: ${error.message}`));
  }
});

let view = null;   // the view for which was asked what waits

function followWaits(status) {
  if (status.lease_ms === 0) {
    view = null;
    return fill(byId("cluster-waits"), element("p", { class: "empty" }, "Not known: this node does not hear from the others."));
  }
  const changed = view !== status.view;
  view = status.view;
  return updateWaits(changed);
}

export const update = paced(async () => {
  try {
    const pattern = byId("owner-filter").value.trim();
    const [status, owners] = await Promise.all([command("CLUSTER", "STATUS"), command("CLUSTER", "OWNERS", pattern ? `*${pattern}*` : "*")]);
    showStatus(status);
    followWaits(status);
    showOwners(owners);
  } catch (error) {
    fill(byId("cluster-facts"), element("dt", {}, "refused"), element("dd", { class: "bad" }, `${error.code}: ${error.message}`));
  }
});

listen(byId("cluster-waits"), { "end-session": endSession });
byId("owner-filter").addEventListener("input", () => update(true));
