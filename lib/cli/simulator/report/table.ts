import { inShort, type FigureRow } from './findings.js';

const GAP = '  ';

/** The figures of one scenario: a line for each, a column for each contender, the bar at the end. */
export function formatTable(rows: readonly FigureRow[]): string {
  const contenders = [...new Set(rows.map(({ contender }) => contender))];
  const lines = [['', ...contenders, 'bar', ''], ...figureLines(rows, contenders)];
  const widths = lines[0]!.map((_, column) => {
    return Math.max(...lines.map((line) => [...line[column]!].length));
  });
  return lines.map((line) => formatLine(line, widths)).join('\n');
}

/** A figure that comes twice, once for each of several runs, gets a line each time. */
function figureLines(rows: readonly FigureRow[], contenders: readonly string[]): string[][] {
  const lines: { figure: string; cells: Map<string, FigureRow> }[] = [];
  for (const row of rows) {
    const open = lines.find(({ figure, cells }) => {
      return figure === row.figure && !cells.has(row.contender);
    });
    if (open === undefined) {
      lines.push({ figure: row.figure, cells: new Map([[row.contender, row]]) });
    } else {
      open.cells.set(row.contender, row);
    }
  }
  return lines.map(({ figure, cells }) => {
    const judged = [...cells.values()].find(({ bar }) => bar !== null);
    const values = contenders.map((name) => valueOf(cells.get(name)));
    return [figure, ...values, judged?.bar ?? '', verdict(judged)];
  });
}

function valueOf(row: FigureRow | undefined): string {
  return row === undefined ? '' : inShort(row.value);
}

function verdict(row: FigureRow | undefined): string {
  if (row === undefined) return '';
  return row.ok === true ? 'ok' : 'MISSED';
}

function formatLine(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => {
    const isText = column === 0 || column === cells.length - 1;
    return isText ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  });
  return `${GAP}${padded.join(GAP)}`.trimEnd();
}
