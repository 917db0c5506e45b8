/** The known name that was probably meant, or undefined if none is like it. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  // A third of the letters may be wrong; beyond that a hint would be a guess.
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const one of known) {
    const isPlural = wanted.endsWith('y') && one === `${wanted.slice(0, -1)}ies`;
    // Each letter too many is an edit, so most names need not be compared.
    if (!isPlural && Math.abs(one.length - wanted.length) >= fewest) continue;
    const edits = isPlural ? 1 : distance(wanted, one.toLowerCase());
    if (edits < fewest) [best, fewest] = [one, edits];
  }
  return best;
}

const LONGEST_NAME = 64;

/** Letters to add, drop, replace or swap with their neighbour to make one text of the other. */
function distance(a: string, b: string): number {
  if (Math.max(a.length, b.length) > LONGEST_NAME) return a === b ? 0 : Infinity;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
