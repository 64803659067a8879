// The page of the cluster: who is in, who leads, who owns what and how that moved, and whose lease runs out. Any node has it.

import { command } from "./api.js";
import { byId, element, fill, many, moment, page, span, table } from "./dom.js";
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

function showStatus(status) {
  fill(byId("cluster-facts"),
    element("dt", {}, "seen by"), element("dd", {}, `node ${status.id}, start ${status.start}`),
    element("dt", {}, "cluster"), element("dd", { class: "mono" }, status.cluster ?? "none: this node was started without --peer"),
    element("dt", {}, "leader"), element("dd", {}, status.leader === null
      ? element("span", { class: status.cluster ? "bad" : null }, status.cluster ? "none known" : "none needed")
      : `node ${status.leader}, term ${status.term}`),
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

export const update = paced(async () => {
  try {
    const pattern = byId("owner-filter").value.trim();
    const [status, owners] = await Promise.all([command("CLUSTER", "STATUS"), command("CLUSTER", "OWNERS", pattern ? `*${pattern}*` : "*")]);
    showStatus(status);
    showOwners(owners);
  } catch (error) {
    fill(byId("cluster-facts"), element("dt", {}, "refused"), element("dd", { class: "bad" }, `${error.code}: ${error.message}`));
  }
});

byId("owner-filter").addEventListener("input", () => update(true));
