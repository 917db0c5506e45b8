import { posix } from 'node:path';
import ts from 'typescript';

export interface SourceFile {
  /** From the repository's root, with forward slashes: lib/local/lease.ts. */
  readonly path: string;
  readonly text: string;
}

/** From the ground up. Rooms of one storey do not know each other. */
const STOREYS: readonly (readonly string[])[] = [
  ['common'],
  ['algorithms'],
  ['stores'],
  ['local'],
  ['limiter'],
  // The parts of a request that every feature needs, and the contract that transports fill.
  ['requests'],
  ['limits'],
  ['protection'],
  // A resource that protection turns away is one of the causes to degrade.
  ['degradation'],
  ['overload'],
  ['observability'],
  // Asks every feature below to check its own section of the document.
  ['config'],
  ['transports'],
  ['dashboard'],
  // The files directly in lib: the module, its options and the public index.
  [''],
  // For operators, and for the tests of applications, whose Redis is that of the simulator: the library itself knows
  // nothing of either.
  ['cli'],
  ['testing'],
];

/** Rooms without Nest and without I/O, and the packages they may use all the same. */
const PURE_ROOMS: ReadonlyMap<string, readonly string[]> = new Map([
  // node:os names the host for a node's id; that asks the kernel, not a disk or a network.
  ['common', ['node:crypto', 'node:os', 'node:perf_hooks']],
  ['algorithms', []],
  ['local', []],
]);

/** A pure room may know a store's contract, but not the store that talks to a network. */
const IO_DIRECTORIES = ['lib/stores/redis'];

/** One sentence for each import that points the wrong way. */
export function wrongImports(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    if (storeyOf(roomOf(file.path)) < 0) {
      return [`${file.path}: lib/${roomOf(file.path)} is no room of the house`];
    }
    return importsOf(file.text).flatMap((specifier) => {
      const fault = faultOf(file.path, specifier);
      return fault ? [`${file.path} imports ${specifier}: ${fault}`] : [];
    });
  });
}

/**
 * One sentence for each group of files that import each other, directly or by way of others: none of them
 * can be read, tested or moved without the rest.
 */
export function fileCycles(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  const imports = new Map(
    files.map(({ path, text }) => {
      const targets = importsOf(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(path), specifier))
        .flatMap((target) => ['.ts', '.tsx'].map((end) => target.replace(/\.js$/, end)));
      return [path, targets.filter((target) => known.has(target))] as const;
    }),
  );
  const reached = new Map([...imports.keys()].map((path) => [path, reachedFrom(path, imports)]));
  const told = new Set<string>();
  return [...imports.keys()].sort().flatMap((path) => {
    if (told.has(path) || !reached.get(path)!.has(path)) return [];
    const group = [...reached.get(path)!].filter((other) => reached.get(other)!.has(path)).sort();
    for (const one of group) told.add(one);
    return [group.join(' ⇄ ')];
  });
}

/** The files that a file imports, and those that they import, and so on. */
function reachedFrom(
  path: string,
  imports: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...imports.get(path)!];
  while (open.length > 0) {
    const next = open.pop()!;
    if (found.has(next)) continue;
    found.add(next);
    open.push(...imports.get(next)!);
  }
  return found;
}

export const importsOf = (text: string): string[] =>
  ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName);

function faultOf(path: string, specifier: string): string | undefined {
  const room = roomOf(path);
  const pure = PURE_ROOMS.get(room);
  if (!specifier.startsWith('.')) {
    if (isOrBelow(specifier, 'nestjs-weir')) return 'the library does not import itself by name';
    if (pure && !pure.includes(specifier)) return `lib/${room} knows neither Nest nor I/O`;
    return undefined;
  }
  const target = posix.join(posix.dirname(path), specifier);
  if (!isOrBelow(target, 'lib')) return 'nothing outside lib is part of the library';
  const targetRoom = roomOf(target);
  const [from, to] = [storeyOf(room), storeyOf(targetRoom)];
  if (to < 0) return `lib/${targetRoom} is no room of the house`;
  if (room !== targetRoom && to >= from) return `lib/${targetRoom} is not below lib/${room}`;
  if (pure && IO_DIRECTORIES.some((dir) => isOrBelow(target, dir))) {
    return `lib/${room} does no I/O`;
  }
  return undefined;
}

/** lib/local/x.ts -> local; lib/index.ts -> the empty name of the top floor. */
function roomOf(path: string): string {
  const [, room = '', ...rest] = path.split('/');
  return rest.length === 0 ? '' : room;
}

const storeyOf = (room: string): number => STOREYS.findIndex((rooms) => rooms.includes(room));

const isOrBelow = (path: string, dir: string): boolean =>
  path === dir || path.startsWith(`${dir}/`);
