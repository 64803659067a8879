// The page of groups and decisions: who is a member, what was delivered last, and which values are decided.

import { byId, element, fill, many, page, table } from "./dom.js";

let latest = null;      // the last state

const who = (session, label) => label ? `${label} (session ${session})` : `session ${session}`;

function groupWords(group) {
  const members = group.members.length + group.members_more;
  return [`order ${group.order}`, `using ${group.using}`, many(members, "member"), `last message ${group.last}`, `${group.kept} kept`].join(", ");
}

function memberLine(member) {
  return element("li", { class: "inside" },
    element("span", { class: "place" }, "member"),
    element("span", {}, who(member.session, member.label)),
    element("span", {}, member.node === null ? "" : `node ${member.node}`),
    element("span", { class: "soft" }, member.joined_after === null ? "" : `joined after ${member.joined_after}`));
}

function deliveryRows(group) {
  return group.deliveries.map((delivery) => {
    const row = [element("span", { class: "mono" }, delivery.number), who(delivery.session, delivery.label), element("span", { class: "value mono" }, delivery.body)];
    row.key = String(delivery.number);
    return row;
  });
}

function groupCard(group) {
  const [first, next] = page(`members of ${group.name}`, group.members, 20);
  const deliveries = deliveryRows(group);
  return element("article", { class: "gate", "data-key": group.name, "data-group-name": group.name },
    element("header", {}, element("h3", {}, group.name), element("span", { class: "what" }, groupWords(group))),
    element("ul", { class: "people" }, ...first.map(memberLine)), next,
    group.members_more ? element("p", { class: "soft" }, `and ${group.members_more} more; testigo group members shows them`) : null,
    deliveries.length ? element("div", { class: "terms" }, element("h4", {}, "Latest deliveries"), table(["number", "from", "body"], deliveries, "")) : null);
}

export function take(state) {
  latest = state;
}

export function update() {
  if (!latest) return;
  const wanted = byId("group-filter").value.trim();
  const fits = (row) => row.name.includes(wanted);
  const more = (count) => count ? [element("p", { class: "soft" }, `and ${count} more that are not shown`)] : [];
  const [groups, nextGroups] = page("groups", latest.groups.filter(fits), 20);
  const cards = groups.map(groupCard);
  fill(byId("group-list"), ...(cards.length ? [...cards, nextGroups] : [element("p", { class: "empty" }, "No groups. Try: testigo group join talk")]), ...more(latest.groups_more));
  const [decisions, nextDecisions] = page("decisions", latest.decisions.filter(fits), 50);
  const rows = decisions.map((decision) => {
    const row = [decision.name, element("span", { class: "value mono" }, decision.value)];
    row.key = decision.name;
    return row;
  });
  fill(byId("decision-list"), table(["name", "decided value"], rows, "No decisions. Try: testigo decide release 7.1"), nextDecisions, ...more(latest.decisions_more));
}

byId("group-filter").addEventListener("input", update);
