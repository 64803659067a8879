// A flow as it runs, in the same graphical language as `testigo flow graph`: a process is round, a queue a rectangle, ⊢
// creates and ⊣ deletes. The node has laid it out; here it is stretched so that numbers fit in.

import { brief, element, many, rate, span, svg } from "./dom.js";

export const STRETCH = { x: 1.5, y: 1.75 };
const NAME_CHARS = 28;
const HEAD = 8;
const BAR = 18;
// How wide a letter of the small text is, roughly.
export const LETTER = 6;
const SMALLEST = 0.75;
// The room that a rate takes, how far it is above its line, and where along that it may stand, the best place first.
const RATE = { width: 44, height: 14 };
const LIFT = 9;
const ALONG = [0.5, 0.38, 0.62, 0.3, 0.7];
// A line between two columns is looked at in these points, in pictures of at most so many of them.
const SAMPLES = Array.from({ length: 17 }, (_, step) => step / 16);
const CAREFUL = 400;

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
export function path(points, direction) {
  const inside = points.map(([x, y], at) => at === points.length - 1 ? [x - direction * (HEAD - 1), y] : [x, y]);
  return inside.map(([x, y], at) => {
    if (at === 0) return `M${number(x)} ${number(y)}`;
    if (at % 2 === 0) return `L${number(x)} ${number(y)}`;
    const [x0, y0] = inside[at - 1];
    const middle = number((x0 + x) / 2);
    return `C${middle} ${number(y0)} ${middle} ${number(y)} ${number(x)} ${number(y)}`;
  }).join("");
}

// A point of the curve that `path` draws between two columns.
export function between([x0, y0], [x1, y1], t) {
  const [start, end] = [(1 - t) ** 3, t ** 3];
  const [near, far] = [3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t];
  return [start * x0 + (near + far) * (x0 + x1) / 2 + end * x1, (start + near) * y0 + (far + end) * y1];
}

// Where the middle of each arrow's rate stands: above its own line or on it, and clear of other rates and lines as far as there is room.
function ratePlaces({ arrows }) {
  const gaps = arrows.map(({ points }) => {
    const stretched = points.map(([x, y]) => [x * STRETCH.x, y * STRETCH.y]);
    return stretched.flatMap((point, at) => at % 2 ? [[stretched[at - 1], point]] : []);
  });
  const above = ([x, y]) => [x, y - LIFT];
  if (gaps.flat().length > CAREFUL) return gaps.map(([[start, end]]) => above(between(start, end, 0.5)));
  const along = (own, parts) => own.flatMap(([start, end]) => parts.map((t) => between(start, end, t)));
  const lines = gaps.map((own) => along(own, SAMPLES));
  const isNear = ([x, y], [x0, y0], share) => Math.abs(x - x0) < RATE.width * share && Math.abs(y - y0) < RATE.height * share;
  const taken = [];
  return gaps.map((own, at) => {
    const trouble = (place) => taken.filter((other) => isNear(other, place, 1)).length * SAMPLES.length
      + lines.reduce((sum, line, other) => sum + (other === at ? 0 : line.filter((point) => isNear(point, place, 0.5)).length), 0);
    const places = along(own, ALONG).map(above).map((place) => [place, trouble(place)]);
    const [best] = places.reduce((one, other) => other[1] < one[1] ? other : one);
    taken.push(best);
    return best;
  });
}

const arrowKey = (process, queue, into) => `${process}:${queue}:${into}`;

const isFull = (queue) => queue.limit !== null && queue.waiting + queue.held >= queue.limit;

// The line of an arrow, and its rate, which is to be drawn above all lines.
function arrow(picture, one, [rateX, rateY], live) {
  const [from, to] = [picture.nodes[one.from], picture.nodes[one.to]];
  const points = one.points.map(([x, y]) => [x * STRETCH.x, y * STRETCH.y]);
  const direction = one.back ? -1 : 1;
  const puts = to.kind === "queue";
  const queue = live.queues.get(puts ? to.name : from.name);
  const pressed = puts && queue && isFull(queue);
  const counted = live.arrows.get(puts ? arrowKey(from.name, to.name, true) : arrowKey(to.name, from.name, false));
  const words = [pressed ? "full" : "", rate(counted?.per_second)].filter(Boolean).join(" ");
  const jobs = counted ? `: ${many(counted.count, "job")} since the node started` : "";
  const [x, y] = points[points.length - 1];
  const kind = `${one.back ? " back" : ""}${pressed ? " pressed" : ""}`;
  const ends = { "data-from": from.name, "data-to": to.name };
  const line = svg("g", { class: "edge", ...ends },
    svg("path", { class: `arrow${kind}`, d: path(points, direction) },
      svg("title", {}, `${puts ? `${from.name} puts into [${to.name}]${pressed ? ", which is full" : ""}` : `${to.name} takes from [${from.name}]`}${jobs}`)),
    head(x, y, one.back ? 180 : 0, { class: `head${kind}` }));
  return [line, words ? svg("text", { class: `rate${kind}`, ...ends, x: number(rateX), y: number(rateY + 4) }, words) : null];
}

function queueNode(node, live) {
  const queue = live.queues.get(node.name);
  const [x, y, width, height] = [node.x * STRETCH.x, node.y * STRETCH.y, node.width * STRETCH.x, node.height * STRETCH.y];
  const [left, top] = [number(x - width / 2), number(y - height / 2)];
  const reject = live.rejects.has(node.name);
  const full = queue && isFull(queue);
  const line = (dy, text, kind = "small") => svg("text", { class: kind, x: number(x), y: number(y + dy) }, text);
  // Where the word does not fit, the number alone; the title has both, exactly.
  const fitting = (count, word) => [`${brief(count)} ${word}`, brief(count)].find((text) => text.length * LETTER < width - 4) ?? brief(count);
  const waiting = queue ? fitting(queue.waiting, "waiting") : "";
  const held = queue?.held ? fitting(queue.held, "held") : "";
  const numbers = queue ? `${queue.waiting} waiting${queue.held ? `, ${queue.held} held` : ""}` : "";
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
    const inOut = [[queue.arrivals_per_second, true, "in"], [queue.departures_per_second, false, "out"]].map(([all, into, word]) =>
      all - (live.along.get(`${node.name}:${into}`) ?? 0) > 0.05 ? `${word} ${rate(all)}` : "");
    const below = [full ? `full: ${brief(queue.limit)}` : "", queue.age_ms === null ? "" : `next: ${span(queue.age_ms)}`, ...inOut].filter(Boolean).join(", ");
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
  // A process with a short name has room for a number only.
  const roomy = node.width * STRETCH.x * 0.85 >= words.length * LETTER;
  return svg("g", { "data-process": node.name },
    svg("ellipse", { class: "process", cx: number(x), cy: number(y), rx: number(node.width * STRETCH.x / 2), ry: number(node.height * STRETCH.y / 2) },
      svg("title", {}, `process ${node.name}: ${words}`)),
    svg("text", { class: "name", x: number(x), y: number(y - 2) }, short(node.name)),
    svg("text", { class: starves ? "small wanted" : "small", x: number(x), y: number(y + 14) }, roomy ? words : brief(clients)),
    node.create ? bar(node.create[0] * STRETCH.x, node.create[1] * STRETCH.y, -BAR, { class: "bar creates" }) : null,
    node.delete ? bar(node.delete[0] * STRETCH.x, node.delete[1] * STRETCH.y, BAR, { class: "bar deletes" }) : null);
}

// How wide a picture is at least, so that it can be read.
export const smallestWidth = (picture) => picture.width * STRETCH.x * SMALLEST;

// The picture of a flow with its present numbers, in so many pixels of width if it can be read then, or if it is to be whole.
export function livePicture(picture, flow, room, whole) {
  picture.ratePlaces ??= ratePlaces(picture);
  const live = {
    name: flow.name,
    queues: new Map(flow.queues.map((queue) => [queue.name, queue])),
    processes: new Map(flow.processes.map((process) => [process.name, process])),
    rejects: new Set(flow.queues.map((queue) => queue.reject).filter(Boolean)),
    arrows: new Map(flow.arrows.map((one) => [arrowKey(one.process, one.queue, one.into), one])),
    along: new Map(),
  };
  // What all arrows of a queue carry a second. What administrators do, and rejects, come and go along none.
  for (const { queue, into, per_second: more } of flow.arrows) {
    live.along.set(`${queue}:${into}`, (live.along.get(`${queue}:${into}`) ?? 0) + more);
  }
  // As high as what is drawn, without the printed picture's room for a title, and a little smaller where that makes it fit.
  const heights = [...picture.nodes.flatMap((node) => [node.y - node.height / 2, node.y + node.height / 2]),
    ...picture.arrows.flatMap((one) => one.points.map(([, y]) => y))].map((y) => y * STRETCH.y);
  const top = number(Math.min(...heights) - 22);
  const [width, height] = [number(picture.width * STRETCH.x), number(Math.max(...heights, 0) - top + 30)];
  const arrows = picture.arrows.map((one, at) => arrow(picture, one, picture.ratePlaces[at], live));
  const scale = Math.max(whole ? 0 : SMALLEST, Math.min(1, room / width));
  return element("div", { class: "scroll", tabindex: scale * width > room ? 0 : null }, svg("svg", { class: "flow", viewBox: `0 ${top} ${width} ${height}`,
    width: number(width * scale), height: number(height * scale), role: "group", "aria-label": `the flow ${flow.name}` },
  arrows.map(([line]) => line), arrows.map(([, words]) => words),
  picture.nodes.map((node) => node.kind === "queue" ? queueNode(node, live) : processNode(node, live))));
}
