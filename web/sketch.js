// A sketch, the drawing that is edited: processes, queues, arrows. Places are in the units of the node's own layout. It need not be
// a flow yet; the node says what is wrong with it.

const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u;
const NAME_BYTES = 100;
const TOP = 45;
const LEAST = 20;

export const keyOf = (kind, name) => `${kind}:${name}`;
export const arrowKey = (arrow) => `arrow:${arrow.process}:${arrow.queue}:${puts(arrow) ? "put" : "take"}`;
export const puts = (arrow) => arrow.does === "put" || arrow.does === "create";
export const isMarked = (arrow) => arrow.does === "create" || arrow.does === "delete";

// Why a text is no name, or nothing.
export function wrongName(name) {
  if (!name) return "a name is empty";
  if (new TextEncoder().encode(name).length > NAME_BYTES) return `a name has at most ${NAME_BYTES} bytes`;
  return NAME.test(name) ? "" : "a name has letters, digits, _ - and . and starts with a letter, a digit or _";
}

export class Sketch {
  constructor(drawing = {}) {
    this.processes = (drawing.processes ?? []).map((process) => ({ ...process }));
    this.queues = (drawing.queues ?? []).map((queue) => ({ ...queue }));
    this.arrows = (drawing.arrows ?? []).map((arrow) => ({ ...arrow }));
    this.retries = drawing.retries ?? null;
    this.reject = drawing.reject ?? null;
    for (const process of this.processes) {
      // What new arrows of the process are marked with.
      process.creator ??= this.arrows.some((arrow) => arrow.process === process.name && arrow.does === "create");
      process.deleter ??= this.arrows.some((arrow) => arrow.process === process.name && arrow.does === "delete");
    }
  }

  // As the node takes it.
  plain() {
    const processes = this.processes.map(({ creator, deleter, placed, laid, ...process }) => process);
    const queues = this.queues.map(({ placed, laid, ...queue }) => queue);
    const arrows = this.arrows.map(({ points, ...arrow }) => arrow);
    return { processes, queues, arrows, retries: this.retries, reject: this.reject };
  }

  copy() {
    return new Sketch(structuredClone({ ...this }));
  }

  nodes() {
    return [...this.processes.map((node) => ({ kind: "process", node })), ...this.queues.map((node) => ({ kind: "queue", node }))];
  }

  list(kind) {
    return kind === "process" ? this.processes : this.queues;
  }

  find(kind, name) {
    return this.list(kind).find((node) => node.name === name);
  }

  // The chosen thing: `{ kind, node }`, `{ kind: "arrow", arrow }` or nothing.
  at(key) {
    const arrow = this.arrows.find((one) => arrowKey(one) === key);
    if (arrow) return { kind: "arrow", arrow };
    return this.nodes().find(({ kind, node }) => keyOf(kind, node.name) === key);
  }

  freshName(kind) {
    for (let number = this.list(kind).length + 1; ; number += 1) {
      if (!this.find(kind, `${kind}${number}`)) return `${kind}${number}`;
    }
  }

  add(kind, x, y) {
    const name = this.freshName(kind);
    this.list(kind).push(kind === "process" ? { name, x, y, placed: true, limit: null, rights: [], creator: false, deleter: false }
      : { name, x, y, placed: true, limit: null, order: "arrival", retries: null, reject: "inherited", rights: [], data: null });
    return keyOf(kind, name);
  }

  // A person wants something to stand there.
  place(node, x, y) {
    [node.x, node.y, node.placed] = [Math.max(LEAST, x), Math.max(LEAST, y), true];
  }

  // Notes where everything stands that a person placed. What is not in the drawing may come back, to where it stood.
  notePlaces(places) {
    for (const { kind, node } of this.nodes()) {
      if (node.placed) places.set(keyOf(kind, node.name), [node.x, node.y].map(Math.round));
      else places.delete(keyOf(kind, node.name));
    }
  }

  // A place where nothing stands yet.
  freePlace() {
    for (let step = 0; ; step += 1) {
      const [x, y] = [60 + (step % 5) * 110, 75 + Math.floor(step / 5) * 60];
      if (this.nodes().every(({ node }) => Math.abs(node.x - x) > 70 || Math.abs(node.y - y) > 40)) return [x, y];
    }
  }

  // From a node to one of the other kind. Gives its key, or nothing where there can be none.
  connect(from, to) {
    if (from.kind === to.kind) return null;
    const [process, queue] = from.kind === "process" ? [from.node, to.node] : [to.node, from.node];
    const does = from.kind === "process" ? process.creator ? "create" : "put" : process.deleter ? "delete" : "take";
    const arrow = { process: process.name, queue: queue.name, does };
    const key = arrowKey(arrow);
    if (!this.at(key)) this.arrows.push(arrow);
    return key;
  }

  mark(arrow, marked) {
    arrow.does = puts(arrow) ? marked ? "create" : "put" : marked ? "delete" : "take";
  }

  // ⊢ or ⊣ of a process: all its arrows of that direction, and those that will be drawn.
  markProcess(process, creates, marked) {
    process[creates ? "creator" : "deleter"] = marked;
    for (const arrow of this.arrows) {
      if (arrow.process === process.name && puts(arrow) === creates) this.mark(arrow, marked);
    }
  }

  rename(kind, node, name) {
    for (const arrow of this.arrows) if (arrow[kind] === node.name) arrow[kind] = name;
    if (kind === "queue") {
      if (this.reject === node.name) this.reject = name;
      for (const queue of this.queues) if (queue.reject?.to === node.name) queue.reject = { to: name };
    }
    node.name = name;
    // Another name needs another width.
    delete node.laid;
    return keyOf(kind, name);
  }

  remove(key) {
    const found = this.at(key);
    if (!found) return;
    if (found.kind === "arrow") {
      this.arrows = this.arrows.filter((arrow) => arrow !== found.arrow);
      return;
    }
    const { kind, node } = found;
    this.arrows = this.arrows.filter((arrow) => arrow[kind] !== node.name);
    if (kind === "process") {
      this.processes = this.processes.filter((process) => process !== node);
      return;
    }
    this.queues = this.queues.filter((queue) => queue !== node);
    if (this.reject === node.name) this.reject = null;
    for (const queue of this.queues) if (queue.reject?.to === node.name) queue.reject = "inherited";
  }

  rejectQueues() {
    return new Set([this.reject, ...this.queues.map((queue) => queue.reject?.to)].filter(Boolean));
  }

  // Takes over how the node has laid it out: how large everything is and how arrows go around it. All of it is pulled up to
  // the top, where the printed picture has its title.
  layOut(drawing) {
    const down = TOP - Math.min(...drawing.nodes.map(({ y }) => y));
    for (const { kind, name, x, y, width, height } of drawing.nodes) {
      const node = this.find(kind, name);
      if (node) [node.x, node.y, node.laid] = [x, y + down, { x, y: y + down, width, height }];
    }
    for (const { from, to, points } of drawing.arrows) {
      const [start, end] = [drawing.nodes[from], drawing.nodes[to]];
      const [process, queue] = start.kind === "process" ? [start, end] : [end, start];
      const arrow = this.arrows.find((one) => one.process === process.name && one.queue === queue.name && puts(one) === (start.kind === "process"));
      if (arrow) arrow.points = points.map(([x, y]) => [x, y + down]);
    }
    return this;
  }

  // The way that the node has laid out for an arrow, while both of its ends stand where they stood then.
  wayOf(arrow) {
    const stands = (node) => node.laid && Math.abs(node.laid.x - node.x) < 0.5 && Math.abs(node.laid.y - node.y) < 0.5;
    const ends = [this.find("process", arrow.process), this.find("queue", arrow.queue)];
    return arrow.points && ends.every(stands) ? arrow.points : null;
  }

  // Takes over the places of what was drawn before, and else those that were noted.
  takePlaces(before, places) {
    for (const { kind, node } of this.nodes()) {
      const old = before.find(kind, node.name);
      const place = places.get(keyOf(kind, node.name));
      if (old) [node.x, node.y, node.placed] = [old.x, old.y, old.placed];
      else if (place) this.place(node, ...place);
    }
  }
}
