// Asking the node. Every refusal becomes an error with its word (`code`) and its sentence (`message`).

export class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function post(path, body) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
  } catch {
    throw new Refused("UNKNOWN", "the node does not answer; the change may have been made");
  }
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Refused("UNAVAILABLE", text.trim() || `the node answered ${response.status}`);
  }
  if (!response.ok) throw new Refused(answer.error?.code ?? "", answer.error?.message ?? text.trim());
  return answer;
}

// A command of the wire: its words, each a string.
export const command = async (...words) => (await post("/api/command", words.map(String))).answer;

export const draw = (text) => post("/api/flow/draw", { text });
export const write = (sketch, text) => post("/api/flow/write", { sketch, text });
export const plan = (name, text, seen) => post("/api/flow/plan", { name: name || null, text, seen });

// The bytes of a text or `{base64}`, as the node gives bodies.
export function bodyOf(body) {
  if (typeof body === "string") return { text: body, bytes: new TextEncoder().encode(body).length, isText: true };
  const bytes = Uint8Array.from(atob(body.base64), (char) => char.charCodeAt(0));
  const hex = [...bytes.slice(0, 4096)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return { text: bytes.length > 4096 ? `${hex} …` : hex, bytes: bytes.length, isText: false };
}
