// The drawing on the page: shapes to look at, and what mouse, finger and keys do to them.

import { byId, fill, svg } from "./dom.js";
import { STRETCH, bar, between, head, path, short } from "./picture.js";
import { arrowKey, isMarked, keyOf, puts } from "./sketch.js";

const LETTER = 7.6;
const PADDING = 26;
const HEIGHT = 36;
const BAR = 18;
const HANDLE = 9;
// What is drawn smaller than this cannot be read.
const SMALLEST = 0.7;
// A finger that moves less than this has only pressed.
const SLIP = 4;

export function box(kind, node) {
  const width = node.laid?.width ?? Math.max(kind === "process" ? 40 : 52, Math.min(node.name.length, 28) * LETTER + PADDING);
  return { x: node.x * STRETCH.x, y: node.y * STRETCH.y, width: width * STRETCH.x, height: (node.laid?.height ?? HEIGHT) * STRETCH.y };
}

// Where the line from the middle of a shape to another point leaves the shape.
function border(kind, { x, y, width, height }, tx, ty) {
  const [dx, dy] = [tx - x, ty - y];
  if (!dx && !dy) return [x, y];
  const scale = kind === "process" ? 1 / Math.hypot(dx / (width / 2), dy / (height / 2))
    : 1 / Math.max(Math.abs(dx) / (width / 2), Math.abs(dy) / (height / 2));
  return [x + dx * scale, y + dy * scale];
}

// How far arrows go out of the way of what stands between their ends.
const DETOURS = [0, 80, -80, 140, -140, 220, -220, 320, -320, 440, -440];
const STEPS = Array.from({ length: 23 }, (_, step) => (step + 1) / 24);

// How many of these points lie in a box that is not one of the arrow's ends, or touch it.
function hits(boxes, ends, points) {
  const others = boxes.filter(({ node }) => !ends.includes(node));
  const isIn = ([x, y], other) => Math.abs(x - other.x) < other.width / 2 + 4 && Math.abs(y - other.y) < other.height / 2 + 4;
  return points.filter((point) => others.some((other) => isIn(point, other))).length;
}

// The point that an arrow bends towards: the middle, unless something else stands in its way.
function knee(boxes, from, to, a, b) {
  const [mx, my] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [nx, ny] = [-(b.y - a.y) / length, (b.x - a.x) / length];
  // A curve goes half as far as the point that it bends towards, and must not leave the paper.
  const at = (detour) => [mx + nx * detour, Math.max(8 - Math.max(a.y, b.y), my + ny * detour)];
  const crossed = (detour) => {
    const [cx, cy] = at(detour);
    return hits(boxes, [from.node, to.node], STEPS.map((t) =>
      [(1 - t) ** 2 * a.x + 2 * t * (1 - t) * cx + t * t * b.x, (1 - t) ** 2 * a.y + 2 * t * (1 - t) * cy + t * t * b.y]));
  };
  let best = [0, Infinity];
  for (const detour of DETOURS) {
    const count = crossed(detour);
    if (count < best[1]) best = [detour, count];
    if (count === 0) break;
  }
  return at(best[0]);
}

// The node's own way around everything, unless something was moved or put into it.
function laidWay(sketch, boxes, arrow, ends) {
  const way = sketch.wayOf(arrow)?.map(([x, y]) => [x * STRETCH.x, y * STRETCH.y]);
  if (!way) return null;
  const along = way.flatMap((point, at) => at % 2 ? STEPS.map((t) => between(way[at - 1], point, t)) : []);
  return hits(boxes, ends.map(({ node }) => node), along) ? null : way;
}

function declared(queue) {
  const words = [];
  if (queue.limit !== null) words.push(`limit ${queue.limit}`);
  if (queue.order !== "arrival") words.push(queue.order);
  if (queue.retries !== null) words.push(`retries ${queue.retries}`);
  return words.join(", ");
}

function arrowShape(sketch, boxes, arrow, chosen) {
  const forward = puts(arrow);
  const ends = [{ kind: "process", node: sketch.find("process", arrow.process) }, { kind: "queue", node: sketch.find("queue", arrow.queue) }];
  const [from, to] = forward ? ends : ends.reverse();
  const [a, b] = [box(from.kind, from.node), box(to.kind, to.node)];
  // Two arrows between the same two are drawn beside each other.
  const both = sketch.arrows.some((other) => other !== arrow && other.process === arrow.process && other.queue === arrow.queue);
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [sx, sy] = both ? [-(b.y - a.y) / length * 9, (b.x - a.x) / length * 9] : [0, 0];
  const way = laidWay(sketch, boxes, arrow, ends);
  const curve = () => {
    const [cx, cy] = knee(boxes, from, to, a, b);
    const [x0, y0] = border(from.kind, a, cx, cy);
    const [x1, y1] = border(to.kind, b, cx, cy);
    return [`M${x0 + sx} ${y0 + sy}Q${cx + sx} ${cy + sy} ${x1 + sx} ${y1 + sy}`, [x1 + sx, y1 + sy], Math.atan2(y1 - cy, x1 - cx) * 180 / Math.PI];
  };
  const direction = way && way[0][0] > way.at(-1)[0] ? -1 : 1;
  const [line, [tipX, tipY], angle] = way ? [path(way, direction), way.at(-1), direction < 0 ? 180 : 0] : curve();
  const key = arrowKey(arrow);
  const word = { put: "puts into", create: "creates into", take: "takes from", delete: "takes and deletes from" }[arrow.does];
  return svg("g", { class: `edge${key === chosen ? " chosen" : ""}`, "data-key": key, "data-arrow": key, tabindex: 0, role: "button",
    "aria-label": `${arrow.process} ${word} ${arrow.queue}` },
  svg("path", { class: "touch", d: line }),
  svg("path", { class: `arrow${isMarked(arrow) ? " marked" : ""}`, d: line }),
  head(tipX, tipY, angle, { class: `head${isMarked(arrow) ? " marked" : ""}` }));
}

function nodeShape(sketch, { kind, node }, chosen, rejects, wrong) {
  const { x, y, width, height } = box(kind, node);
  const key = keyOf(kind, node.name);
  const isChosen = key === chosen;
  const [left, right] = [x - width / 2, x + width / 2];
  const bad = wrong.has(key) ? " wrong" : "";
  const creates = kind === "process" && (node.creator || sketch.arrows.some((one) => one.process === node.name && one.does === "create"));
  const deletes = kind === "process" && (node.deleter || sketch.arrows.some((one) => one.process === node.name && one.does === "delete"));
  const mark = (isOn, name, at, reach, words) => kind === "process" && (isOn || isChosen)
    ? svg("g", { class: isOn ? "mark on" : "mark", "data-mark": name },
      svg("title", {}, words),
      svg("rect", { class: "touch", x: reach < 0 ? at - BAR - 6 : at, y: y - 14, width: BAR + 6, height: 28 }),
      bar(at, y, reach, { class: "bar" })) : null;
  const words = kind === "queue" ? declared(node) : node.limit === null ? "" : `limit ${node.limit}`;
  const lift = words ? -4 : 5;
  return svg("g", { class: `node${isChosen ? " chosen" : ""}`, "data-key": key, "data-node": key, tabindex: 0, role: "button",
    "aria-label": `${kind} ${node.name}${creates ? ", creates" : ""}${deletes ? ", deletes" : ""}${words ? `, ${words}` : ""}` },
  kind === "process" ? svg("ellipse", { class: `process${bad}`, cx: x, cy: y, rx: width / 2, ry: height / 2 })
    : svg("rect", { class: `queue${rejects.has(node.name) ? " reject" : ""}${bad}`, x: left, y: y - height / 2, width, height }),
  svg("text", { class: "name", x, y: y + lift }, short(node.name)),
  words ? svg("text", { class: "small", x, y: y + 13 }, words) : null,
  mark(creates, "creates", left, -BAR, creates ? "creates jobs; press to take back" : "press to let it create jobs"),
  mark(deletes, "deletes", right, BAR, deletes ? "deletes jobs; press to take back" : "press to let it delete jobs"),
  isChosen ? svg("circle", { class: "handle", "data-handle": key, cx: x, cy: y + height / 2, r: HANDLE },
    svg("title", {}, "pull an arrow from here")) : null);
}

export class Canvas {
  // `deeds`: choose(key), place(x, y), moved(), connect(fromKey, toKey | [x, y]), mark(key, creates), remove(key).
  constructor(deeds) {
    this.deeds = deeds;
    this.armed = false;
    this.whole = false;
    this.pull = null;
    this.root = svg("svg", { class: "flow editing", role: "application", "aria-label": "The drawing" });
    byId("canvas").append(this.root);
    this.root.addEventListener("pointerdown", (event) => this.press(event));
    this.root.addEventListener("pointermove", (event) => this.drag(event));
    this.root.addEventListener("pointerup", (event) => this.release(event));
    this.root.addEventListener("pointercancel", () => this.forget());
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focusin", (event) => {
      const found = event.target.closest("[data-node], [data-arrow]");
      if (found) deeds.choose(found.dataset.node ?? found.dataset.arrow);
    });
  }

  render(sketch, chosen, wrong = new Set()) {
    this.sketch = sketch;
    this.chosen = chosen;
    this.wrong = wrong;
    const room = byId("canvas").clientWidth;
    let [width, height] = [Math.max(300, room), 320];
    const boxes = sketch.nodes().map(({ kind, node }) => ({ node, ...box(kind, node) }));
    for (const shape of boxes) {
      width = Math.max(width, shape.x + shape.width / 2 + 40);
      height = Math.max(height, shape.y + shape.height / 2 + 40);
    }
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // A little smaller where that makes it fit, or as small as it must be.
    const scale = Math.max(this.whole ? 0 : SMALLEST, Math.min(1, room / width));
    this.root.setAttribute("width", Math.floor(width * scale));
    this.root.setAttribute("height", Math.floor(height * scale));
    this.fits = width * SMALLEST <= room;
    this.root.classList.toggle("armed", this.armed);
    const rejects = sketch.rejectQueues();
    fill(this.root,
      sketch.arrows.map((arrow) => arrowShape(sketch, boxes, arrow, chosen)),
      sketch.nodes().map((one) => nodeShape(sketch, one, chosen, rejects, wrong)),
      this.pull?.to ? svg("path", { class: "arrow pulled", "data-key": "pulled", d: `M${this.pull.from.join(" ")}L${this.pull.to.join(" ")}` }) : null,
      sketch.nodes().length ? null : svg("text", { class: "invitation", x: width / 2, y: 160 }, "Press + Process or + Queue, then press here."));
  }

  // A point of the screen in units of the drawing.
  point(event) {
    const inverse = this.root.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(inverse);
    return [x, y];
  }

  press(event) {
    if (event.button !== 0) return;
    const [x, y] = this.point(event);
    const near = (what) => event.target.closest(`[data-${what}]`)?.dataset[what];
    if (this.armed) {
      event.preventDefault();
      this.deeds.place(x / STRETCH.x, y / STRETCH.y);
      return;
    }
    const [node, arrow, handle, mark] = [near("node"), near("arrow"), near("handle"), near("mark")];
    if (handle) {
      const { x: cx, y: cy, height } = box(...this.shapeOf(handle));
      this.pull = { key: handle, from: [cx, cy + height / 2], to: null };
    } else if (mark) {
      this.deeds.mark(node, mark === "creates");
      return;
    } else if (node) {
      this.deeds.choose(node);
      const found = this.sketch.at(node).node;
      this.grip = { key: node, dx: found.x - x / STRETCH.x, dy: found.y - y / STRETCH.y, from: [x, y], moved: false };
    } else {
      this.deeds.choose(arrow ?? null);
      return;
    }
    this.root.setPointerCapture(event.pointerId);
  }

  shapeOf(key) {
    const { kind, node } = this.sketch.at(key);
    return [kind, node];
  }

  drag(event) {
    const [x, y] = this.point(event);
    if (this.pull) {
      this.pull.to = [x, y];
    } else if (this.grip) {
      const { from, dx, dy } = this.grip;
      this.grip.moved ||= Math.hypot(x - from[0], y - from[1]) > SLIP;
      if (!this.grip.moved) return;
      const { node } = this.sketch.at(this.grip.key);
      this.sketch.place(node, x / STRETCH.x + dx, y / STRETCH.y + dy);
    } else {
      return;
    }
    this.render(this.sketch, this.chosen, this.wrong);
  }

  release(event) {
    const { pull, grip } = this;
    this.forget();
    if (grip?.moved) this.deeds.moved();
    if (!pull?.to) return;
    const over = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-node]")?.dataset.node;
    const [x, y] = this.point(event);
    if (over && over !== pull.key) this.deeds.connect(pull.key, over);
    else if (!over) this.deeds.connect(pull.key, [x / STRETCH.x, y / STRETCH.y]);
  }

  forget() {
    [this.pull, this.grip] = [null, null];
    this.render(this.sketch, this.chosen, this.wrong);
  }

  key(event) {
    const steps = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] };
    const key = event.target.closest("[data-node], [data-arrow]");
    if (!key) return;
    const found = this.sketch.at(key.dataset.node ?? key.dataset.arrow);
    if (steps[event.key] && found?.node) {
      const [dx, dy] = steps[event.key];
      this.sketch.place(found.node, found.node.x + dx, found.node.y + dy);
      this.deeds.moved();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.deeds.remove(key.dataset.node ?? key.dataset.arrow);
    } else if (event.key === "Enter") {
      byId("edit-panel").querySelector("input, select, button")?.focus();
    } else {
      return;
    }
    event.preventDefault();
  }
}
