// The page of elections: who leads, since when and in which term, who would, and the terms that have ended.

import { byId, element, fill, page, span, table } from "./dom.js";

let latest = null;      // the last state

const who = (person) => person.label ? `${person.label} (session ${person.session})` : `session ${person.session}`;
const WHY = { resigned: "it resigned", ended: "its session ended", lost: "a later leader's claim overruled it" };

function electionWords(election) {
  const words = [election.leader ? `led for ${span(latest.now_ms - election.leader.since)}` : "nobody leads"];
  words.push(election.waiting === 1 ? "1 candidate" : `${election.waiting} candidates`);
  if (election.owner !== undefined) words.push(`owned by node ${election.owner}`);
  return words.join(", ");
}

function leaderLine(leader, now) {
  return element("li", { class: "inside" },
    element("span", { class: "place" }, "leads"),
    element("span", {}, element("b", { class: "value mono" }, leader.value), element("span", { class: "soft" }, ` ${who(leader)}`)),
    element("span", {}, `rank ${leader.rank}`),
    element("span", { class: "soft" }, `term ${leader.term}, for ${span(now - leader.since)}`));
}

function candidateLine(candidate, place, now) {
  return element("li", { class: "waiting" },
    element("span", { class: "place" }, `waits, ${place}.`),
    element("span", {}, element("span", { class: "value mono" }, candidate.value), element("span", { class: "soft" }, ` ${who(candidate)}`)),
    element("span", {}, `rank ${candidate.rank}`),
    element("span", { class: "soft" }, `for ${span(now - candidate.since)}`));
}

function termRows(election, now) {
  return election.terms.map((term) => {
    const row = [element("span", { class: "mono" }, term.term), element("span", { class: "value mono" }, term.value), `session ${term.session}`, term.rank,
      span(term.until - term.since), `${span(now - term.until)} ago`, WHY[term.why] ?? term.why];
    row.key = String(term.term);
    return row;
  });
}

export function take(state) {
  latest = state;
}

export function update() {
  if (!latest) return;
  const wanted = byId("election-filter").value.trim();
  const elections = latest.elections.filter((election) => election.name.includes(wanted));
  const [first, next] = page("elections", elections, 20);
  const cards = first.map((election) => {
    const people = [
      ...(election.leader ? [leaderLine(election.leader, latest.now_ms)] : []),
      ...election.candidates.map((candidate, index) => candidateLine(candidate, index + 1, latest.now_ms)),
    ];
    const terms = termRows(election, latest.now_ms);
    return element("article", { class: "gate", "data-key": election.name, "data-election": election.name },
      element("header", {}, element("h3", {}, election.name), element("span", { class: "what" }, electionWords(election))),
      people.length ? element("ul", { class: "people" }, ...people) : null,
      terms.length ? element("div", { class: "terms" }, element("h4", {}, "Terms that ended"),
        table(["term", "value", "leader", "rank", "led for", "ended", "why it ended"], terms, "")) : null);
  });
  const more = latest.elections_more ? [element("p", { class: "soft" }, `and ${latest.elections_more} more; filter or use testigo elect list`)] : [];
  fill(byId("election-list"), ...(cards.length ? [...cards, next] : [element("p", { class: "empty" },
    latest.missing?.length ? "No elections at the nodes that answered." : "No elections. Try: testigo elect demo --value me -- sleep 5")]), ...more);
}

byId("election-filter").addEventListener("input", update);
