import { InvalidConfigError, type ConfigIssue } from '../common/errors.js';
import { checkDocument, checkLayer } from '../config/schema/check.js';
import { ConfigSyntaxError } from '../config/sources/parse-text.js';
import { readArguments, FLAG } from './arguments.js';
import { asJson, DONE, FAILED, type Command, type Output } from './command.js';
import { readDocument } from './documents.js';

/** The faults of one file. */
interface FileVerdict {
  readonly file: string;
  readonly ok: boolean;
  readonly issues: readonly PlacedIssue[];
}

/** A fault of the form has a line and no path. */
type PlacedIssue = Partial<ConfigIssue> & { readonly line?: number; readonly column?: number };

export const configCheck: Command = {
  name: 'config check',
  takes: 'FILE…',
  about: 'say everything that is wrong in JSON or YAML files',
  options: [
    '--partial         the file is laid over other layers, and need not be complete',
    '--allow-empty     a file that configures nothing is right',
    '--json            for machines',
  ],
  async run(args, output) {
    const { values, words } = readArguments(args, OPTIONS, [1, Infinity], 'FILE');
    const verdicts: FileVerdict[] = [];
    for (const file of words) verdicts.push(await verdictOn(file, values));
    if (values.json) output.log(asJson(verdicts));
    else for (const verdict of verdicts) tell(verdict, output);
    return verdicts.every(({ ok }) => ok) ? DONE : FAILED;
  },
};

const OPTIONS = {
  partial: FLAG,
  'allow-empty': FLAG,
  json: FLAG,
} as const;

async function verdictOn(
  file: string,
  options: { partial?: boolean; 'allow-empty'?: boolean },
): Promise<FileVerdict> {
  const check = options.partial ? checkLayer : checkDocument;
  try {
    check(await readDocument(file), { allowEmpty: options['allow-empty'] });
    return { file, ok: true, issues: [] };
  } catch (error) {
    if (error instanceof InvalidConfigError) return { file, ok: false, issues: error.issues };
    if (!(error instanceof ConfigSyntaxError)) throw error;
    const { line, column, reason } = error;
    const position = line === undefined ? {} : { line, column };
    return { file, ok: false, issues: [{ ...position, message: reason }] };
  }
}

function tell({ file, ok, issues }: FileVerdict, output: Output): void {
  if (ok) return output.log(`${file}: ok`);
  const count = issues.length === 1 ? '1 fault' : `${issues.length} faults`;
  const lines = issues.map((issue) => `  ${positionText(issue)}${issue.message}`);
  output.error([`${file}: ${count}`, ...lines].join('\n'));
}

function positionText({ line, column }: PlacedIssue): string {
  return line === undefined ? '' : `line ${line}, column ${column}: `;
}
