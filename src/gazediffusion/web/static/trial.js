// The design of the blind test, as pure functions: pairs, sides, score.

// Fisher and Yates: a shuffled copy.
export function shuffled(items, random = Math.random) {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}

// A real window for a synthetic one: of the same task if there is one, each used once.
export function partner(unused, task) {
  const same = unused.findIndex((one) => one.task === task);
  return unused.splice(Math.max(same, 0), 1)[0];
}

export function pairOf(real, synthetic, random = Math.random) {
  return random() < 0.5
    ? { left: real, right: synthetic, realSide: "left", choice: null }
    : { left: synthetic, right: real, realSide: "right", choice: null };
}

export const isRight = (pair) => pair.choice === pair.realSide;

export const scoreOf = (pairs) => pairs.filter(isRight).length;
