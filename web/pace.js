// Asking again and again, without being a burden: never twice at a time, and the longer an answer took, the later the next
// question.

const SHARE = 20;   // at most a twentieth of the time is spent on answers

// Makes a function that asks if it is time to, or, told so, at once.
export function paced(ask, leastMs = 450) {
  let [asking, again, next] = [false, false, 0];
  return async function run(now = false) {
    if (asking) {
      again ||= now;
      return;
    }
    if (!now && performance.now() < next) return;
    asking = true;
    const start = performance.now();
    try {
      await ask();
    } finally {
      asking = false;
      const took = performance.now() - start;
      next = start + took + Math.max(leastMs, SHARE * took);
    }
    if (again) {
      again = false;
      await run(true);
    }
  };
}
