/** Lines before and after a change. */
const AROUND = 3;
/** Above so many lines on either side of one change they are shown as all gone and all new. */
const MOST_COMPARED = 2000;

interface DiffLine {
  readonly kind: ' ' | '-' | '+';
  readonly line: string;
}

/** The change of a file as `diff -u` has it; '' if there is none. */
export function lineDiff(file: string, before: string, after: string): string {
  if (before === after) return '';
  const steps = stepsOf(before.split('\n'), after.split('\n'));
  const lines = [`--- a/${file}`, `+++ b/${file}`];
  let [oldLine, newLine] = [1, 1];
  for (let at = 0; at < steps.length;) {
    const next = steps.findIndex(({ kind }, index) => index >= at && kind !== ' ');
    if (next === -1) break;
    const from = Math.max(at, next - AROUND);
    oldLine += from - at;
    newLine += from - at;
    const to = endOfHunk(steps, next);
    const hunk = steps.slice(from, to);
    const olds = hunk.filter(({ kind }) => kind !== '+').length;
    const news = hunk.filter(({ kind }) => kind !== '-').length;
    lines.push(`@@ -${oldLine},${olds} +${newLine},${news} @@`);
    for (const { kind, line } of hunk) lines.push(`${kind}${line}`);
    oldLine += olds;
    newLine += news;
    at = to;
  }
  return lines.join('\n');
}

/** Behind the last change that has no more than the usual lines between it and the one before. */
function endOfHunk(steps: readonly DiffLine[], first: number): number {
  let last = first;
  for (let at = first; at < steps.length && at - last <= 2 * AROUND; at++) {
    if (steps[at]!.kind !== ' ') last = at;
  }
  return Math.min(steps.length, last + 1 + AROUND);
}

function stepsOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const same = (line: string): DiffLine => ({ kind: ' ', line });
  return [
    ...before.slice(0, head).map(same),
    ...changed(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ];
}

/** By the longest list of lines that both have, in order. */
function changed(before: readonly string[], after: readonly string[]): DiffLine[] {
  const gone = (line: string): DiffLine => ({ kind: '-', line });
  const added = (line: string): DiffLine => ({ kind: '+', line });
  if (Math.max(before.length, after.length) > MOST_COMPARED) {
    return [...before.map(gone), ...after.map(added)];
  }
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        before[i] === after[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const steps: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const isSame = i < before.length && j < after.length && before[i] === after[j];
    const goesFirst =
      j >= after.length ||
      (i < before.length && lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!);
    if (isSame) {
      steps.push({ kind: ' ', line: before[i]! });
      i++;
      j++;
    } else if (goesFirst) steps.push(gone(before[i++]!));
    else steps.push(added(after[j++]!));
  }
  return steps;
}
