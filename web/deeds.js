// What administrators do with jobs, one or many.

import { command } from "./api.js";
import { many, tell } from "./dom.js";

export const moveTo = (id, queue) => command("JOB", "MOVE", id, queue);

// Back to the queue that it was rejected from.
export async function retryOne(id) {
  const job = await command("JOB", "SHOW", id);
  if (job.rejected_from === null) throw new Error(`job ${id} was not rejected`);
  return moveTo(id, job.rejected_from);
}

// Does something with each, goes on after a refusal, and says how it went.
export async function each(ids, deed, done) {
  let good = 0;
  const refusals = [];
  for (const id of ids) {
    try {
      await deed(id);
      good += 1;
    } catch (error) {
      refusals.push(`${id}: ${error.code ? `${error.code} ` : ""}${error.message}`);
    }
  }
  const why = refusals.slice(0, 3).join("; ");
  tell(refusals.length ? `${many(good, "job")} ${done}, ${refusals.length} not: ${why}` : `${many(good, "job")} ${done}.`, refusals.length > 0);
}
