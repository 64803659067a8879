// What is chosen in the drawing, with its declarations to be changed.

import { byId, element, fill } from "./dom.js";
import { isMarked, puts, wrongName } from "./sketch.js";

const field = (label, input) => element("label", {}, label, " ", input);

function numberInput(name, value, least, placeholder) {
  return element("input", { type: "number", min: least, step: 1, name, value: value ?? "", placeholder, inputmode: "numeric" });
}

function selectInput(name, choices, value) {
  return element("select", { name }, choices.map(([word, text]) => element("option", { value: word, selected: word === value }, text)));
}

const checkbox = (name, text, on) => element("label", {}, element("input", { type: "checkbox", name, checked: on }), " ", text);
const list = (names) => names.join(", ");
const names = (text) => text.split(/[\s,]+/).filter(Boolean);
const numberOr = (text) => text.trim() === "" ? null : Number(text);

function ofFlow(sketch) {
  const queues = sketch.queues.map(({ name }) => [`to ${name}`, name]);
  return ["The flow", [
    field("retries", numberInput("retries", sketch.retries, 0, "3")),
    field("reject queue", selectInput("reject", [["", "none"], ...queues], sketch.reject ? `to ${sketch.reject}` : "")),
    element("p", { class: "soft" }, "Choose a process, a queue or an arrow to change it. Pull an arrow from the dot below what is chosen."),
  ]];
}

function ofQueue(sketch, queue) {
  const others = sketch.queues.filter((other) => other !== queue).map(({ name }) => [`to ${name}`, name]);
  const reject = typeof queue.reject === "string" ? queue.reject : `to ${queue.reject.to}`;
  return ["Queue", [
    field("name", element("input", { name: "name", value: queue.name, autocomplete: "off", spellcheck: "false" })),
    field("limit", numberInput("limit", queue.limit, 1, "none")),
    field("order", selectInput("order", ["arrival", "priority", "key"].map((word) => [word, word]), queue.order)),
    field("retries", numberInput("retries", queue.retries, 0, "the flow's")),
    field("reject queue", selectInput("reject", [["inherited", "the flow's"], ["never", "none"], ...others], reject)),
    field("data directory", element("input", { name: "data", value: queue.data ?? "", placeholder: "none", spellcheck: "false" })),
    field("rights", element("input", { name: "rights", value: list(queue.rights), placeholder: "administrators only", spellcheck: "false" })),
  ]];
}

function ofProcess(process, sketch) {
  const some = (does) => sketch.arrows.some((arrow) => arrow.process === process.name && arrow.does === does);
  return ["Process", [
    field("name", element("input", { name: "name", value: process.name, autocomplete: "off", spellcheck: "false" })),
    checkbox("creates", "⊢ creates jobs", process.creator || some("create")),
    checkbox("deletes", "⊣ deletes jobs", process.deleter || some("delete")),
    field("limit", numberInput("limit", process.limit, 1, "none")),
    field("rights", element("input", { name: "rights", value: list(process.rights), placeholder: "every user", spellcheck: "false" })),
  ]];
}

function ofArrow(arrow) {
  const words = puts(arrow) ? `${arrow.process} → [${arrow.queue}]` : `[${arrow.queue}] → ${arrow.process}`;
  return [words, [checkbox("marked", puts(arrow) ? "⊢ creates jobs along it" : "⊣ deletes jobs along it", isMarked(arrow))]];
}

export class Panel {
  // `change(deed)` is called with what is to be done to the drawing; it gives what is chosen then, if that changes.
  constructor(change) {
    this.node = byId("edit-panel");
    this.change = change;
    this.node.addEventListener("change", ({ target }) => this.changed(target));
  }

  show(sketch, chosen) {
    this.sketch = sketch;
    this.found = chosen ? sketch.at(chosen) : undefined;
    const { kind, node, arrow } = this.found ?? {};
    const [title, fields] = kind === "queue" ? ofQueue(sketch, node) : kind === "process" ? ofProcess(node, sketch)
      : kind === "arrow" ? ofArrow(arrow) : ofFlow(sketch);
    const others = node ? sketch.list(other(kind)).map(({ name }) => [name, name]) : [];
    // The fields of one thing stay the same fields while it is changed, so that the focus stays where it is.
    const of = numberOf(node ?? arrow ?? this.node);
    fill(this.node, element("div", { "data-key": `fields of ${of}`, class: "panel-fields" }, element("h3", {}, title), fields,
      others.length ? element("div", { class: "row joined" }, field("arrow to", selectInput("arrow", [["", "…"], ...others], "")),
        element("button", { type: "button", "data-do": "connect" }, "Draw")) : null,
      this.found ? element("button", { type: "button", "data-do": "remove", class: "danger" }, "Remove") : null));
    for (const input of this.node.querySelectorAll("input, select")) {
      if (input.type === "checkbox") input.checked = input.hasAttribute("checked");
      else input.value = input.matches("select") ? input.querySelector("[selected]")?.value ?? "" : input.getAttribute("value") ?? "";
    }
  }

  changed(target) {
    const { kind, node, arrow } = this.found ?? {};
    const { name, value, checked } = target;
    if (name === "name") return this.rename(target);
    // An arrow is drawn by its button: keys go through the names one by one.
    if (name === "arrow") return undefined;
    if (target.validity && !target.validity.valid) return target.reportValidity();
    this.change((sketch) => {
      const subject = node ?? sketch;
      if (name === "marked") sketch.mark(arrow, checked);
      else if (name === "creates" || name === "deletes") sketch.markProcess(node, name === "creates", checked);
      else if (name === "rights") subject.rights = names(value);
      else if (name === "data") subject.data = value || null;
      else if (name === "order") subject.order = value;
      else if (name === "reject") subject.reject = rejectOf(value, kind === "queue");
      else subject[name] = numberOr(value);
    });
    return undefined;
  }

  // Draws the arrow that is chosen.
  connect() {
    const { kind, node } = this.found;
    const name = this.node.querySelector("[name=arrow]").value;
    if (name) this.change((sketch) => void sketch.connect({ kind, node }, { kind: other(kind), node: sketch.find(other(kind), name) }));
  }

  rename(target) {
    const { kind, node } = this.found;
    const name = target.value.trim();
    const taken = name !== node.name && this.sketch.find(kind, name);
    const wrong = taken ? `there is a ${kind} ${name} already` : wrongName(name);
    target.setCustomValidity(wrong);
    if (wrong) return target.reportValidity();
    return this.change((sketch) => sketch.rename(kind, node, name));
  }
}

const numbers = new WeakMap();
let numbered = 0;

function numberOf(thing) {
  if (!numbers.has(thing)) numbers.set(thing, numbered += 1);
  return numbers.get(thing);
}

const other = (kind) => kind === "queue" ? "process" : "queue";

function rejectOf(value, ofQueue) {
  const name = value.startsWith("to ") ? value.slice(3) : null;
  return ofQueue ? name ? { to: name } : value : name;
}

