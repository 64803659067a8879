// Building and renewing the page. What comes from the node is put in as text, never as markup.

export const byId = (id) => document.getElementById(id);

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) =>
    typeof child === "number" ? String(child) : child));
  return node;
}

export const element = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Gives a node these children, and keeps what is there already: whoever is about to press a button still finds it.
export function fill(node, ...children) {
  const fresh = node.cloneNode(false);
  put(fresh, {}, children);
  renewChildren(node, fresh);
}

const keyOf = (node) => node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
const alike = (old, fresh) => old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);

function renewChildren(node, fresh) {
  const keyed = new Map([...node.childNodes].filter(keyOf).map((child) => [keyOf(child), child]));
  let at = node.firstChild;
  for (const child of [...fresh.childNodes]) {
    const known = keyOf(child) === null ? at : keyed.get(keyOf(child));
    if (known && alike(known, child)) {
      if (known === at) at = at.nextSibling;
      else node.insertBefore(known, at);
      renew(known, child);
    } else {
      node.insertBefore(child, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function renew(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  renewChildren(old, fresh);
}

export function span(ms) {
  if (ms === null || ms === undefined) return "";
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// A moment of the wall clock, in the reader's own time.
export function moment(ms) {
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export const rate = (perSecond) => perSecond === undefined || perSecond === null ? ""
  : perSecond >= 100 ? `${Math.round(perSecond)}/s` : perSecond >= 0.05 || perSecond === 0 ? `${perSecond.toFixed(1)}/s` : "<0.1/s";

export const many = (number, one, more = `${one}s`) => `${number} ${number === 1 ? one : more}`;

// A number for a place that is small: 12345678 is 12.3M. The exact one is in a title beside it.
export function brief(exact) {
  if (exact < 10_000) return String(exact);
  const rounded = Number(exact.toPrecision(3));
  const [unit, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, one]) => rounded >= one);
  return `${Number((rounded / size).toPrecision(3))}${unit}`;
}

const shown = new Map();   // by the name of a list: how many of its rows are shown

// The rows of a long list that are shown, and a button for more of them.
export function page(list, rows, step = 50) {
  const most = shown.get(list) ?? step;
  const left = rows.length - most;
  return [rows.slice(0, most), left <= 0 ? null : element("p", { "data-key": `more of ${list}` },
    button("show-more", `Show ${Math.min(step, left)} more of ${rows.length}`, { "data-list": list, "data-most": most + step }))];
}

// `show` renews the page.
export function listenForMore(show) {
  listen(document, { "show-more": ({ list, most }) => {
    shown.set(list, Number(most));
    show();
  } });
}

// Words of a cell that stay in one line, however long the other cells are.
export const short = (...words) => element("span", { class: "short" }, ...words);

// A table that becomes a list of cards on a phone. A row is an array of cells with an optional `key`.
export function table(heads, rows, empty) {
  if (!rows.length) return element("p", { class: "empty" }, empty);
  const cell = (content, index) => element("td", { "data-head": heads[index] }, content);
  return element("table", {},
    element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, rows.map((row) => element("tr", { "data-key": row.key ?? null }, row.map(cell)))));
}

export const link = (to, text, attributes = {}) => element("a", { href: to, ...attributes }, text);

export const button = (what, text, attributes = {}) => element("button", { type: "button", "data-do": what, ...attributes }, text);

// Calls the deed that a pressed button names: `deeds[name](dataset of the button)`.
export function listen(node, deeds) {
  node.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-do]");
    const deed = pressed && deeds[pressed.dataset.do];
    if (deed) deed(pressed.dataset, pressed);
  });
}

// Asks before something is done that cannot be taken back. Resolves to whether it was agreed to.
export function sure(question, consequence, yes) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-labelledby": "sure-question" },
      element("form", { method: "dialog" },
        element("h2", { id: "sure-question" }, question),
        element("p", {}, consequence),
        element("div", { class: "row" },
          element("button", { value: "yes", class: "danger", "data-do": "sure" }, yes),
          element("button", { value: "no", autofocus: true }, "Cancel"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// One line of news: what was done, or why not.
export function tell(text, bad = false) {
  const news = byId("news");
  news.className = bad ? "bad" : "good";
  fill(news, element("span", {}, text), button("hush", "Close", { class: "plain" }));
  news.hidden = false;
}

export const tellError = (error) => tell(error.code ? `${error.code}: ${error.message}` : String(error.message ?? error), true);
