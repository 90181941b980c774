// The exact (Clopper-Pearson) interval of a proportion, and a score against chance.

function tail(n, k, p) {
  // P(X >= k) for X ~ Binomial(n, p), summed in logarithms.
  if (k <= 0) return 1;
  if (p <= 0) return 0;
  if (p >= 1) return 1;
  let term = n * Math.log(1 - p); // log P(X = 0)
  let below = 0;
  for (let i = 0; i < k; i++) {
    below += Math.exp(term);
    term += Math.log((n - i) / (i + 1)) + Math.log(p / (1 - p));
  }
  return Math.max(0, 1 - below);
}

function solve(rising, target) {
  let [low, high] = [0, 1];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (rising(middle) < target) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

export function binomialInterval(k, n, level = 0.95) {
  const alpha = (1 - level) / 2;
  const low = k === 0 ? 0 : solve((p) => tail(n, k, p), alpha);
  const high = k === n ? 1 : solve((p) => tail(n, k + 1, p), 1 - alpha);
  return [low, high];
}

export function scoreInWords(k, n) {
  const [low, high] = binomialInterval(k, n);
  if (low > 0.5) return "Better than chance: you can distinguish real from synthetic windows.";
  if (high < 0.5) return "Below chance: you can distinguish them, but chose the synthetic windows.";
  return "Not distinguishable from chance.";
}
