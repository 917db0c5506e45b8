/** A line of the text format of Prometheus, taken apart. */
export interface Line {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads the text format by its grammar; throws at anything that is none of it. */
export function parseExposition(text: string): { lines: Line[]; types: Map<string, string> } {
  const lines: Line[] = [];
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue;
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      types.set(type[1]!, type[2]!);
      continue;
    }
    const parts = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (parts === null) throw new Error(`not a line of the exposition: ${line}`);
    const [, name, labels = '', value] = parts;
    lines.push({ name: name!, labels: labelsOf(labels), value: numberOf(value!) });
  }
  return { lines, types };
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const pair = /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
  while (pair.lastIndex < text.length) {
    const found = pair.exec(text);
    if (found === null) throw new Error(`not labels: ${text}`);
    labels[found[1]!] = found[2]!.replace(/\\(.)/g, (_, sign: string) =>
      sign === 'n' ? '\n' : sign,
    );
  }
  return labels;
}

function numberOf(text: string): number {
  const value = text === '+Inf' ? Infinity : Number(text);
  if (Number.isNaN(value)) throw new Error(`not a number: ${text}`);
  return value;
}
