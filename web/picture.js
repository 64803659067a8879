// A flow as it runs, in the same graphical language as `testigo flow graph`: a process is round, a queue a rectangle, ⊢
// creates and ⊣ deletes. The node has laid it out; here it is stretched so that numbers fit in.

import { element, many, rate, span, svg } from "./dom.js";

export const STRETCH = { x: 1.5, y: 1.75 };
const NAME_CHARS = 28;
const HEAD = 8;
const BAR = 18;
const SMALLEST = 0.75;

export const short = (name) => name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name;
const number = (value) => Math.round(value * 10) / 10;

export function bar(x, y, reach, attributes) {
  return svg("path", { ...attributes, d: `M${number(x)} ${number(y)}h${reach}m0 -8v16` });
}

export function head(x, y, angle, attributes) {
  return svg("path", { ...attributes, d: `M0 0L${-HEAD} ${-HEAD / 2}L${-HEAD} ${HEAD / 2}Z`,
    transform: `translate(${number(x)} ${number(y)}) rotate(${number(angle)})` });
}

// Curves between columns, which leave and arrive level; straight lines across them.
function path(points, direction) {
  const inside = points.map(([x, y], at) => at === points.length - 1 ? [x - direction * (HEAD - 1), y] : [x, y]);
  return inside.map(([x, y], at) => {
    if (at === 0) return `M${number(x)} ${number(y)}`;
    if (at % 2 === 0) return `L${number(x)} ${number(y)}`;
    const [x0, y0] = inside[at - 1];
    const middle = number((x0 + x) / 2);
    return `C${middle} ${number(y0)} ${middle} ${number(y)} ${number(x)} ${number(y)}`;
  }).join("");
}

const isFull = (queue) => queue.limit !== null && queue.waiting + queue.held >= queue.limit;

function arrow(picture, one, live) {
  const [from, to] = [picture.nodes[one.from], picture.nodes[one.to]];
  const points = one.points.map(([x, y]) => [x * STRETCH.x, y * STRETCH.y]);
  const direction = one.back ? -1 : 1;
  const puts = to.kind === "queue";
  const queue = live.queues.get(puts ? to.name : from.name);
  const pressed = puts && queue && isFull(queue);
  const others = picture.arrows.filter((other) => puts ? other.to === one.to : other.from === one.from).length;
  const known = queue && others === 1 ? rate(puts ? queue.arrivals_per_second : queue.departures_per_second) : "";
  const words = [pressed ? "full" : "", known].filter(Boolean).join(" ");
  const [[x0, y0], [x1, y1]] = [points[0], points[1]];
  const [x, y] = points[points.length - 1];
  const kind = `${one.back ? " back" : ""}${pressed ? " pressed" : ""}`;
  return svg("g", { class: "edge", "data-from": from.name, "data-to": to.name },
    svg("path", { class: `arrow${kind}`, d: path(points, direction) },
      svg("title", {}, puts ? `${from.name} puts into [${to.name}]${pressed ? ", which is full" : ""}` : `${to.name} takes from [${from.name}]`)),
    head(x, y, one.back ? 180 : 0, { class: `head${kind}` }),
    words ? svg("text", { class: `rate${kind}`, x: number((x0 + x1) / 2), y: number((y0 + y1) / 2 - 5) }, words) : null);
}

function queueNode(node, live) {
  const queue = live.queues.get(node.name);
  const [x, y, width, height] = [node.x * STRETCH.x, node.y * STRETCH.y, node.width * STRETCH.x, node.height * STRETCH.y];
  const [left, top] = [number(x - width / 2), number(y - height / 2)];
  const reject = live.rejects.has(node.name);
  const full = queue && isFull(queue);
  const line = (dy, text, kind = "small") => svg("text", { class: kind, x: number(x), y: number(y + dy) }, text);
  const waiting = queue ? `${queue.waiting} waiting` : "";
  const held = queue?.held ? `${queue.held} held` : "";
  const numbers = [waiting, held].filter(Boolean).join(", ");
  const parts = [
    svg("rect", { class: `queue${reject ? " reject" : ""}${full ? " full" : ""}`, x: left, y: top, width: number(width), height: number(height) }),
    line(-14, short(node.name), "name"),
    line(held ? 0 : 4, waiting),
    line(13, held),
  ];
  if (queue && queue.limit !== null) {
    const share = Math.min(1, (queue.waiting + queue.held) / queue.limit);
    const track = { x: left + 8, y: number(y + 18), height: 7, rx: 3 };
    parts.push(svg("rect", { class: "track", ...track, width: number(width - 16) }),
      svg("rect", { class: full ? "level full" : "level", ...track, width: number((width - 16) * share) }));
  }
  if (queue) {
    const inOut = [live.shared.into.has(node.name) && rate(queue.arrivals_per_second) ? `in ${rate(queue.arrivals_per_second)}` : "",
      live.shared.out.has(node.name) && rate(queue.departures_per_second) ? `out ${rate(queue.departures_per_second)}` : ""];
    const below = [full ? `full: ${queue.limit}` : "", queue.age_ms === null ? "" : `next: ${span(queue.age_ms)}`, ...inOut].filter(Boolean).join(", ");
    if (below) parts.push(line(height / 2 + 13, below, full ? "below full" : "below"));
  }
  const words = `${reject ? "reject queue" : "queue"} ${node.name}: ${numbers}${queue?.limit ? `, at most ${queue.limit}` : ""}`;
  return svg("a", { href: `#jobs/${encodeURIComponent(`${live.name}/${node.name}`)}`, "data-queue": node.name, "aria-label": words },
    svg("title", {}, words), parts);
}

function processNode(node, live) {
  const process = live.processes.get(node.name);
  const [x, y] = [node.x * STRETCH.x, node.y * STRETCH.y];
  const clients = process?.clients ?? 0;
  const starves = clients === 0 && process?.takes.some((queue) => live.queues.get(queue)?.waiting);
  const words = process?.limit ? `${clients} of ${many(process.limit, "client")}` : clients ? many(clients, "client") : "no client";
  return svg("g", { "data-process": node.name },
    svg("ellipse", { class: "process", cx: number(x), cy: number(y), rx: number(node.width * STRETCH.x / 2), ry: number(node.height * STRETCH.y / 2) },
      svg("title", {}, `process ${node.name}: ${words}`)),
    svg("text", { class: "name", x: number(x), y: number(y - 2) }, short(node.name)),
    svg("text", { class: starves ? "small wanted" : "small", x: number(x), y: number(y + 14) }, words),
    node.create ? bar(node.create[0] * STRETCH.x, node.create[1] * STRETCH.y, -BAR, { class: "bar creates" }) : null,
    node.delete ? bar(node.delete[0] * STRETCH.x, node.delete[1] * STRETCH.y, BAR, { class: "bar deletes" }) : null);
}

// The picture of a flow with its present numbers, in so many pixels of width if it can be read then. Without `arrivals_per_second` no rates are shown.
export function livePicture(picture, flow, room) {
  const ends = (side) => {
    const counts = new Map();
    for (const one of picture.arrows) counts.set(one[side], (counts.get(one[side]) ?? 0) + 1);
    return new Set([...counts].filter(([, count]) => count > 1).map(([at]) => picture.nodes[at].name));
  };
  const live = {
    name: flow.name,
    queues: new Map(flow.queues.map((queue) => [queue.name, queue])),
    processes: new Map(flow.processes.map((process) => [process.name, process])),
    rejects: new Set(flow.queues.map((queue) => queue.reject).filter(Boolean)),
    shared: { into: ends("to"), out: ends("from") },
  };
  // As high as what is drawn, without the printed picture's room for a title, and a little smaller where that makes it fit.
  const heights = [...picture.nodes.flatMap((node) => [node.y - node.height / 2, node.y + node.height / 2]),
    ...picture.arrows.flatMap((one) => one.points.map(([, y]) => y))].map((y) => y * STRETCH.y);
  const top = number(Math.min(...heights) - 22);
  const [width, height] = [number(picture.width * STRETCH.x), number(Math.max(...heights, 0) - top + 30)];
  const scale = Math.max(SMALLEST, Math.min(1, room / width));
  return element("div", { class: "scroll" }, svg("svg", { class: "flow", viewBox: `0 ${top} ${width} ${height}`,
    width: number(width * scale), height: number(height * scale), role: "group", "aria-label": `the flow ${flow.name}` },
  picture.arrows.map((one) => arrow(picture, one, live)),
  picture.nodes.map((node) => node.kind === "queue" ? queueNode(node, live) : processNode(node, live))));
}
