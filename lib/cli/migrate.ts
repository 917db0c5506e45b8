import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { libraryVersion } from '../stores/package-file.js';
import { readArguments, FLAG } from './arguments.js';
import { asJson, CommandFailedError, DONE, FAILED, type Command, type Output } from './command.js';
import { lineDiff } from './migrate/line-diff.js';
import { movableConsts, moveFile } from './migrate/move-file.js';
import { type Finding } from './migrate/moved-source.js';
import { movedPackage, Project, type ProjectFile } from './migrate/project.js';
import { optionConsts } from './migrate/option-consts.js';
import { survey } from './migrate/survey.js';

const PAGE = 'docs/migrating-from-throttler.md';

/** The changes of the whole project. */
interface MigrationPlan {
  readonly changes: readonly {
    readonly file: string;
    readonly before: string;
    readonly after: string;
  }[];
  readonly findings: readonly (Finding & { readonly file: string })[];
}

export const migrate: Command = {
  name: 'migrate',
  takes: '[DIR]',
  about: 'move a project from @nestjs/throttler over, and say what needs a person',
  options: [
    '--write           write the changes that are shown; without it nothing is written',
    '--force           write also where git could not bring the files back',
    '--json            for machines',
  ],
  more: [
    'Modules, decorators, guards, tests and package.json are changed, by the TypeScript of the project itself.',
    `What is left is listed with its line and the page that has more of it, from ${PAGE} on; the exit code is 1 then.`,
  ],
  run: (args, output) => Promise.resolve(move(args, output)),
};

const OPTIONS = {
  write: FLAG,
  force: FLAG,
  json: FLAG,
} as const;

function move(args: readonly string[], output: Output): number {
  const { values, words } = readArguments(args, OPTIONS, [0, 1]);
  const project = new Project(words[0] ?? '.');
  const plan = planFor(project, values.write === true);
  const isWritten = plan.changes.length > 0 && values.write === true;
  if (isWritten && !values.force) refuseUnsaved(project, plan);
  if (values.json) output.log(asJson(asData(plan)));
  else show(plan, output);
  if (isWritten) write(project, plan);
  if (!values.json) close(plan, values.write === true, output);
  return plan.findings.length === 0 ? DONE : FAILED;
}

/** Lines of findings are those of the new files if these are written, so that they can be gone to. */
function planFor(project: Project, isWritten: boolean): MigrationPlan {
  const files = project.files();
  const isPackage = ({ file }: ProjectFile): boolean => /(^|\/)package\.json$/.test(file);
  const sources = files.filter((one) => !isPackage(one));
  const packages = files.filter(isPackage);
  if (sources.length === 0 && packages.length === 0) return { changes: [], findings: [] };
  const ts = project.typescript();
  const seen = survey(
    ts,
    sources,
    packages.some(countsSeconds),
    project.readsHeaders,
    optionConsts(ts, sources),
  );
  const known = { ...seen, consts: movableConsts(ts, sources, seen) };
  const changes: MigrationPlan['changes'][number][] = [];
  const findings: MigrationPlan['findings'][number][] = [];
  const keeps = new Set<string>();
  for (const { file, text } of sources) {
    const moved = moveFile(ts, file, text, known);
    for (const name of moved.keeps) keeps.add(name);
    const told = isWritten ? moved.findingsAfter : moved.findings;
    const inOrder = [...told].sort((a, b) => a.line - b.line);
    findings.push(...inOrder.map((finding) => ({ ...finding, file })));
    if (moved.text !== text) changes.push({ file, before: text, after: moved.text });
  }
  for (const { file, text } of packages) {
    const after = seen.keptBy === undefined ? packageAfter(file, text, keeps) : text;
    if (after !== text) changes.push({ file, before: text, after });
    const nest = versionOf(text, '@nestjs/core');
    if (nest !== undefined && nest < 11) {
      findings.push({
        ...{ file, line: 1, page: `${PAGE}#by-command` },
        text: `nestjs-weir needs Nest 11 or 12, and this is Nest ${nest}: update it first`,
      });
    }
  }
  return { changes, findings };
}

function packageAfter(file: string, text: string, keeps: ReadonlySet<string>): string {
  try {
    return movedPackage(text, keeps, libraryVersion());
  } catch (cause) {
    throw new CommandFailedError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

const countsSeconds = ({ text }: ProjectFile): boolean =>
  (versionOf(text, '@nestjs/throttler') ?? 5) < 5;

/** The major version that a package.json asks for, if it says one. */
function versionOf(text: string, name: string): number | undefined {
  const range = new RegExp(`"${name}"\\s*:\\s*"[^"\\d]*(\\d+)`).exec(text)?.[1];
  return range === undefined ? undefined : Number(range);
}

function show({ changes, findings }: MigrationPlan, output: Output): void {
  for (const { file, before, after } of changes) output.log(lineDiff(file, before, after));
  if (findings.length === 0) return;
  output.log(`${changes.length > 0 ? '\n' : ''}For a person:`);
  for (const { file, line, text, page } of findings) {
    output.log(`  ${file}:${line}  ${text} (${page})`);
  }
}

function close({ changes, findings }: MigrationPlan, isWritten: boolean, output: Output): void {
  if (changes.length === 0) {
    const rest =
      findings.length === 0
        ? 'nothing here uses @nestjs/throttler'
        : 'nothing can be moved by itself';
    return output.log(`Nothing to change: ${rest}.`);
  }
  const count = `${changes.length} ${changes.length === 1 ? 'file' : 'files'}`;
  output.log(
    isWritten
      ? `\nWritten: ${count}. Next: npm install, your formatter, and your tests.`
      : `\n${count} would change. Nothing was written: run it again with --write.`,
  );
}

/** Changes that are not committed would be lost. */
function refuseUnsaved(project: Project, { changes }: MigrationPlan): void {
  const unsaved = project.unsaved(changes.map(({ file }) => file));
  if (unsaved.length === 0) return;
  throw new CommandFailedError(
    `Nothing was written: git could not bring back ${unsaved.slice(0, 5).join(', ')}${unsaved.length > 5 ? ', …' : ''}. ` +
      'Commit first, or say --force.',
  );
}

/** Only what was shown: a file that has changed since is left as it is. */
function write(project: Project, { changes }: MigrationPlan): void {
  for (const { file, before, after } of changes) {
    const path = join(project.root, file);
    if (readFileSync(path, 'utf8') !== before) {
      throw new CommandFailedError(`${file} has changed in the meantime: run it again`);
    }
    writeFileSync(path, after);
  }
}

const asData = ({ changes, findings }: MigrationPlan) => ({
  changes: changes.map(({ file, before, after }) => ({
    file,
    diff: lineDiff(file, before, after),
  })),
  findings,
});
