// The drawing is the editor: what is drawn becomes text, and what is typed becomes a drawing; the node does both, and says
// what is wrong and what applying would change.

import { command, draw, plan, write } from "./api.js";
import { Canvas } from "./canvas.js";
import { byId, element, fill, listen, many, sure, tell } from "./dom.js";
import { Panel } from "./panel.js";
import { keepPlaces, placesOf } from "./places.js";
import { Sketch, keyOf } from "./sketch.js";

const UNDOS = 100;
const PAUSE_MS = 150;

let sketch = new Sketch();
let chosen = null;
let undos = [];
let redos = [];
let before = sketch.copy();
let places = new Map();    // where a person placed things
let base = "";             // the text that the drawing was made from
let opened;                // the running flow that is edited; none for a new one
let seen = null;           // that flow's text as it was opened or applied
let mark = null;           // of the running flow that the plan on the page compares with; none if it does not run
let liveMark = null;       // of the running flow as it was told last
let dirty = false;
let tool = null;
let turn = 0;              // answers to older questions are dropped
let pause = null;
let unfinished = null;     // what the node was asked last, until it is answered
let planned = null;        // what applying would change
let since = null;          // what others have changed meanwhile
let wrong = new Set();
let whole = null;          // the text of the drawing, if it is a flow

const applyButton = byId("editor").querySelector("[data-do=apply]");
function settle(state) {
  byId("editor").dataset.settled = state;
  if (state === "yes") unfinished = null;
}
const flowName = () => opened ?? byId("edit-name").value.trim();

const canvas = new Canvas({
  choose(key) {
    if (key === chosen) return;
    chosen = key;
    refresh();
  },
  place(x, y) {
    change(() => sketch.add(tool, x, y));
    arm(null);
    askName();
  },
  moved: () => change(() => undefined, false),
  connect(from, to) {
    change(() => {
      const start = sketch.at(from);
      const end = Array.isArray(to) ? sketch.add(start.kind === "process" ? "queue" : "process", ...to) : to;
      sketch.connect(start, sketch.at(end));
      return Array.isArray(to) ? end : undefined;
    });
    if (Array.isArray(to)) askName();
  },
  mark: (key, creates) => change(() => {
    const { node } = sketch.at(key);
    const on = node[creates ? "creator" : "deleter"] || sketch.arrows.some((arrow) => arrow.process === node.name && arrow.does === (creates ? "create" : "delete"));
    sketch.markProcess(node, creates, !on);
  }),
  remove,
});
// What was just placed is given its name by typing.
const askName = () => byId("edit-panel").querySelector("input[name=name]")?.select();
const panel = new Panel((deed) => change(() => deed(sketch)));

const toolButton = (deed) => byId("edit-tools").querySelector(`[data-do=${deed}]`);

function repaint() {
  canvas.armed = tool !== null;
  canvas.render(sketch, chosen, wrong);
  toolButton("undo").disabled = !undos.length;
  toolButton("redo").disabled = !redos.length;
  toolButton("fit").setAttribute("aria-pressed", String(canvas.whole));
  toolButton("fit").hidden = canvas.fits && !canvas.whole;
}

// Places are kept by the name of the running flow, as soon as there is one.
function keep() {
  sketch.notePlaces(places);
  if (opened !== undefined) keepPlaces(opened, places);
}

// The drawing is the running flow: what is not in it needs no place.
function forgetGone() {
  places = new Map([...places].filter(([key]) => sketch.at(key)));
  keep();
}

function refresh() {
  repaint();
  panel.show(sketch, chosen);
}

// Another drawing has taken the place of the one before, which can be had back.
function remember() {
  undos.push(before);
  if (undos.length > UNDOS) undos.shift();
  redos = [];
  before = sketch.copy();
}

// Goes to the drawing on top of one pile, and puts the present one on the other.
function go(from, to) {
  if (!from.length) return;
  to.push(sketch.copy());
  sketch = from.pop();
  before = sketch.copy();
  if (chosen && !sketch.at(chosen)) chosen = null;
  dirty = true;
  keep();
  refresh();
  later(drawn);
}

// Does something to the drawing; what the deed gives is chosen then.
function change(deed, means = true) {
  const next = deed();
  if (next !== undefined && next !== null) chosen = next;
  remember();
  keep();
  refresh();
  if (!means) return;
  dirty = true;
  later(drawn);
}

function remove(key) {
  change(() => {
    sketch.remove(key);
    chosen = null;
  });
}

// Asks the node in a moment; answers that are still on their way are of what was before.
function later(deed) {
  turn += 1;
  unfinished = deed;
  settle("no");
  applyButton.disabled = true;
  clearTimeout(pause);
  pause = setTimeout(deed, PAUSE_MS);
}

// The drawing has changed: its text.
async function drawn() {
  const mine = ++turn;
  try {
    const { text, findings } = await write(sketch.plain(), base || null);
    if (mine !== turn) return;
    byId("edit-text").classList.toggle("old", text === null);
    judge(findings, text !== null);
    if (text !== null) {
      base = text;
      byId("edit-text").value = text;
    }
    await foresee(mine, text);
  } catch (error) {
    if (mine === turn) stuck(error);
  }
}

// The text has changed: its drawing.
async function typed() {
  const mine = ++turn;
  const text = byId("edit-text").value;
  try {
    const { sketch: read, drawing, findings } = await draw(text);
    if (mine !== turn) return;
    const valid = findings.every((finding) => finding.weight !== "error");
    if (read) {
      const next = new Sketch(read).layOut(drawing);
      next.takePlaces(sketch, places);
      sketch = next;
      if (dirty) remember();
      before = sketch.copy();
      if (chosen && !sketch.at(chosen)) chosen = null;
      panel.show(sketch, chosen);
      base = text;
      if (!dirty) forgetGone();
    }
    byId("edit-text").classList.remove("old");
    judge(findings, valid);
    await foresee(mine, valid ? text : null);
  } catch (error) {
    if (mine === turn) stuck(error);
  }
}

function judge(found, valid) {
  const empty = sketch.nodes().length === 0;
  // That nothing is not a flow need not be said.
  const findings = empty ? [] : found;
  wrong = new Set(findings.flatMap((finding) => [finding.process && keyOf("process", finding.process), finding.queue && keyOf("queue", finding.queue)]).filter(Boolean));
  const where = (finding) => finding.line ? `line ${finding.line}, column ${finding.column}: ` : "";
  fill(byId("edit-findings"), findings.map((finding) => element("li", { class: finding.weight },
    element("b", {}, finding.rule), ` ${where(finding)}${finding.message}`)));
  const isOld = byId("edit-text").classList.contains("old") && base !== "";
  byId("edit-said").textContent = empty ? "" : valid ? "This is a flow." : `Not a flow yet${isOld ? "; the text is the one of before" : ""}.`;
  repaint();
}

// What the first jobs of a queue that would be gone are called, if that may be seen.
function called({ jobs, names }) {
  if (!names.length) return "";
  const more = jobs > names.length ? ` and ${jobs - names.length} more` : "";
  return `: ${names.join(", ")}${more}`;
}

const signs = { added: "+", removed: "-", changed: "~" };
const lines = (changes) => changes.map((one) => element("li", { class: one.kind }, `${signs[one.kind]} ${one.what}`));

// A client that works as a process which would be gone, or may do less.
function works({ process, arrows, clients }) {
  const what = arrows.length ? `would lose ${arrows.join(", ")}` : "would be gone";
  return clients.map(({ id, name, machine, jobs }) => element("li", { class: "warning" },
    `at work: client ${id} (${[name, machine].filter(Boolean).join(", ")}) as ${process}, which ${what}${jobs.length ? `; it holds ${jobs.join(", ")}` : ""}`));
}

async function foresee(mine, text) {
  [planned, since, whole] = [null, null, text];
  const answer = text === null ? null : await plan(flowName(), text, seen);
  if (mine !== turn) return;
  if (answer) ({ plan: planned, since, mark } = answer);
  // What was undone up to the flow as it was opened need not be kept.
  if (answer && opened !== undefined) dirty = text !== seen;
  const changes = lines(planned?.changes ?? []);
  const stranded = planned?.stranded.map((one) =>
    element("li", { class: "error" }, `in the way: the queue ${one.queue} would be gone and has ${many(one.jobs, "job")}${called(one)}`)) ?? [];
  const none = answer && !changes.length ? [element("li", { class: "soft" }, "nothing")] : [];
  fill(byId("edit-plan"), stranded, planned?.losing.map(works) ?? [], changes, none);
  byId("edit-since").hidden = since === null;
  if (since) fill(byId("edit-since-changes"), since.changes.length ? lines(since.changes) : element("li", { class: "soft" }, "only how it is written"));
  applyButton.disabled = planned === null;
  settle("yes");
}

const foreseeAgain = () => foresee(++turn, whole).catch(stuck);

function stuck(error) {
  fill(byId("edit-findings"), element("li", { class: "error" }, `${error.code ?? ""} ${error.message}`));
  byId("edit-said").textContent = "Not a flow yet.";
  applyButton.disabled = true;
  settle("yes");
}

function arm(kind) {
  tool = kind;
  for (const one of byId("edit-tools").querySelectorAll("[data-tool]")) one.setAttribute("aria-pressed", String(one.dataset.tool === kind));
  byId("edit-hint").textContent = kind ? `press where the ${kind} is to stand` : "";
  refresh();
}

async function apply() {
  const name = flowName();
  if (!name) {
    byId("edit-name").focus();
    return tell("Give the flow a name first.", true);
  }
  const goes = planned?.changes.filter((one) => one.kind === "removed") ?? [];
  const others = since ? "Others have changed the flow since you opened it; this takes the place of what they did. " : "";
  if ((goes.length || others) && !await sure(`Change the running flow ${name}?`,
    `${others}${goes.length ? `These go: ${goes.map((one) => one.what).join("; ")}.` : ""}`, "Apply")) return undefined;
  if (!opened && mark !== null
    && !await sure(`Replace the flow ${name}?`, "A flow of that name runs already; this drawing takes its place.", "Replace")) return undefined;
  const text = byId("edit-text").value;
  settle("no");
  try {
    // Only over what the plan on the page compares with.
    await command("FLOW", "APPLY", name, text, "OVER", mark ?? "NONE");
    tell(`The flow ${name} runs as drawn.`);
    dirty = false;
    keepPlaces(name, places);
    if (opened !== name) {
      location.hash = `#edit/${encodeURIComponent(name)}`;
    } else {
      seen = text;
      later(typed);
    }
  } catch (error) {
    const why = error.code === "STALE" ? "Others have changed the flow meanwhile; look at the difference, then apply again." : error.message;
    tell(`Not applied. ${error.code}: ${why}`, true);
    if (error.code === "STALE") await foreseeAgain();
    settle("yes");
  }
  return undefined;
}

// Forgets where a person placed things.
async function layOut() {
  const text = byId("edit-text").value;
  try {
    const { sketch: read, drawing } = await draw(text);
    if (!read || byId("edit-text").classList.contains("old")) return tell("Only what is a flow can be laid out.", true);
    places.clear();
    change(() => { sketch = new Sketch(read).layOut(drawing); }, false);
  } catch (error) {
    tell(error.message, true);
  }
  return undefined;
}

listen(byId("editor"), {
  tool({ tool: kind }, pressed) {
    // Pressed by a key: there is no pointer that could say where.
    if (pressed.matches(":focus-visible")) {
      tool = kind;
      change(() => sketch.add(kind, ...sketch.freePlace()));
      return arm(null);
    }
    return arm(tool === kind ? null : kind);
  },
  undo: () => go(undos, redos),
  redo: () => go(redos, undos),
  fit() {
    canvas.whole = !canvas.whole;
    repaint();
  },
  "lay-out": layOut,
  remove: () => chosen && remove(chosen),
  connect: () => panel.connect(),
  "start-again": () => show(opened, true),
  apply,
});
byId("edit-text").addEventListener("input", () => {
  dirty = true;
  later(typed);
});
byId("edit-name").addEventListener("change", () => {
  // Another name changes what applying would change; what is on its way is asked once more.
  later(unfinished ?? foreseeAgain);
});
// Where text is typed, keys undo what was typed.
document.addEventListener("keydown", (event) => {
  if (byId("editor").closest("[data-page]").hidden || !(event.ctrlKey || event.metaKey) || event.altKey) return;
  if (event.target.matches("textarea, input:not([type=checkbox])") || document.querySelector("dialog")) return;
  const key = event.key.toLowerCase();
  if (key === "z") event.shiftKey ? go(redos, undos) : go(undos, redos);
  else if (key === "y") go(redos, undos);
  else return;
  event.preventDefault();
});
window.addEventListener("resize", () => byId("editor").closest("[data-page]").hidden || repaint());
window.addEventListener("beforeunload", (event) => dirty && event.preventDefault());

// Comes up for a running flow, or for a new one; what is drawn of it already stays, unless it is to be as the flow runs.
export async function show(name, anew = false) {
  if (name === opened && dirty && !anew) return refresh();
  opened = name;
  [sketch, chosen, undos, redos, base, seen, mark, liveMark, dirty] = [new Sketch(), null, [], [], "", null, null, null, false];
  canvas.whole = false;
  before = sketch.copy();
  places = name === undefined ? new Map() : placesOf(name);
  byId("edit-title").textContent = name ? `Draw the flow ${name}` : "Draw a flow";
  byId("edit-name-label").hidden = name !== undefined;
  byId("edit-text").value = "";
  arm(null);
  if (name !== undefined) {
    settle("no");
    unfinished = typed;
    try {
      const { text } = await command("FLOW", "SHOW", name);
      if (opened !== name) return undefined;
      byId("edit-text").value = text;
      seen = text;
    } catch (error) {
      return stuck(error);
    }
  }
  later(typed);
  return undefined;
}

// When others have changed the running flow: shows it, or, beside what is drawn meanwhile, the difference.
export function know({ flows }) {
  const running = flows.find((flow) => flow.name === opened);
  if (!running || running.mark === liveMark) return;
  liveMark = running.mark;
  // What is asked now has it in its answer.
  if (unfinished || running.mark === mark) return;
  if (dirty) later(foreseeAgain);
  else show(opened);
}
