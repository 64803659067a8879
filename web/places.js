// Where a person placed the processes and queues of a drawing. This browser keeps it, by the flow's name: places are no part of a
// flow, and of no use on another screen. In hand they are a map: `[x, y]` by the key of what stands there.

const ITEM = "testigo.places";
const FLOWS_MAX = 50;     // flows whose places are kept; those that were drawn longest ago are forgotten
const PLACES_MAX = 400;   // places of one flow: as many as a drawing can have

// Pairs of a flow and its places, the one that was drawn last at the end.
function kept() {
  try {
    const flows = JSON.parse(localStorage.getItem(ITEM));
    return Array.isArray(flows) ? flows.filter(Array.isArray) : [];
  } catch {
    return [];
  }
}

export function placesOf(flow) {
  return new Map(kept().find(([name]) => name === flow)?.[1]);
}

export function keepPlaces(flow, places) {
  const flows = kept().filter(([name]) => name !== flow);
  if (places.size) flows.push([flow, [...places].slice(-PLACES_MAX)]);
  try {
    localStorage.setItem(ITEM, JSON.stringify(flows.slice(-FLOWS_MAX)));
  } catch {
    // This browser keeps nothing: every drawing is laid out anew.
  }
}
