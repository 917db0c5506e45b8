import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { makeTempDir } from '../support/processes.js';

export interface Tarball {
  readonly file: string;
  /** Its contents. */
  readonly folder: string;
  readonly files: readonly string[];
  /** Bytes to download. */
  readonly size: number;
  readonly unpackedSize: number;
}

interface PackReport {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

const apps = fileURLToPath(new URL('./apps/', import.meta.url));

/** The package as it would be published. The tree is built already, so no script has to run. */
export async function packPackage(): Promise<Tarball> {
  const dir = makeTempDir();
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', dir];
  const [report] = JSON.parse(await npm(args, root)) as [PackReport];
  const file = join(dir, report.filename);
  await mustRun('tar', ['-xzf', file, '-C', dir], dir);
  return {
    file,
    folder: join(dir, 'package'),
    files: report.files.map(({ path }) => path),
    size: report.size,
    unpackedSize: report.unpackedSize,
  };
}

export type Nest = 11 | 12;

/** An app that has installed the package by npm, below the repository's node_modules: peers are found there. */
export async function installApp(tarball: Tarball): Promise<string> {
  const dir = appBelow('module');
  // The dependencies of the package were downloaded with the repository's own; its peers are there.
  await npm(['install', '--prefer-offline', '--legacy-peer-deps', tarball.file], dir);
  return dir;
}

/** An app there with the package as npm would have put it, in a fiftieth of the time. */
export function makeApp(tarball: Tarball, type: 'module' | 'commonjs'): string {
  return putPackage(appBelow(type), tarball);
}

/**
 * An app elsewhere: it has what every user must have, and none of the optional packages but these. On Nest 11 they are
 * those of Nest 11, where there are any.
 */
export function makeBareApp(
  tarball: Tarball,
  nest: Nest,
  others: readonly string[] = [],
  type: 'module' | 'commonjs' = nest === 12 ? 'module' : 'commonjs',
): string {
  const dir = putPackage(fill(makeTempDir(), type), tarball);
  for (const name of [...requiredPeers(), ...dependencies(), ...others]) {
    const ofNest11 = join(root, 'test/nest11/node_modules', name);
    const isThere = nest === 11 && existsSync(ofNest11);
    linkPackage(dir, name, isThere ? ofNest11 : join(root, 'node_modules', name));
  }
  return dir;
}

export function removeApp(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}

function appBelow(type: string): string {
  const cache = join(root, 'node_modules/.cache/nestjs-weir');
  mkdirSync(cache, { recursive: true });
  return fill(mkdtempSync(join(cache, 'app-')), type);
}

function fill(dir: string, type: string): string {
  cpSync(apps, dir, { recursive: true });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'app', private: true, type }));
  return dir;
}

function putPackage(dir: string, { folder }: Tarball): string {
  cpSync(folder, join(dir, 'node_modules/nestjs-weir'), { recursive: true });
  return dir;
}

function linkPackage(dir: string, name: string, target: string): void {
  const link = join(dir, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(target, link, 'dir');
}

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, { optional?: boolean }>;
}

const manifest = (): Manifest =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

const dependencies = (): string[] => Object.keys(manifest().dependencies);

function requiredPeers(): string[] {
  return Object.keys(manifest().peerDependencies).filter((name) => !isOptional(name));
}

export const optionalPeers = (): string[] =>
  Object.keys(manifest().peerDependencies).filter(isOptional);

const isOptional = (name: string): boolean =>
  manifest().peerDependenciesMeta[name]?.optional === true;

async function npm(args: readonly string[], cwd: string): Promise<string> {
  return mustRun('npm', [...args, '--no-audit', '--no-fund'], cwd);
}

async function mustRun(program: string, args: readonly string[], cwd: string): Promise<string> {
  const finished = await runToEnd(program, args, { cwd });
  if (finished.code !== 0) throw new Error(`${program} ${args[0]} failed:\n${finished.output}`);
  return finished.stdout;
}
