import {
  cpSync,
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
  return {
    file: join(dir, report.filename),
    files: report.files.map(({ path }) => path),
    size: report.size,
    unpackedSize: report.unpackedSize,
  };
}

/** An app with the package installed, below the repository's node_modules: peers are found there. */
export async function makeApp(tarball: Tarball, type: 'module' | 'commonjs'): Promise<string> {
  const cache = join(root, 'node_modules/.cache/nestjs-weir');
  mkdirSync(cache, { recursive: true });
  return fillApp(mkdtempSync(join(cache, 'app-')), tarball, type);
}

/** An app elsewhere: it has what every user must have, and none of the optional packages but these. */
export async function makeBareApp(
  tarball: Tarball,
  others: readonly string[] = [],
): Promise<string> {
  const dir = await fillApp(makeTempDir(), tarball, 'module');
  linkPackages(dir, join(root, 'node_modules'), [...requiredPeers(), ...others]);
  return dir;
}

/** A CommonJS app elsewhere, on Nest 11 and with these packages beside it. */
export async function makeAppOnNest11(
  tarball: Tarball,
  others: readonly string[],
): Promise<string> {
  const dir = await fillApp(makeTempDir(), tarball, 'commonjs');
  const platforms = ['@nestjs/platform-express', '@nestjs/platform-fastify'];
  linkPackages(dir, join(root, 'test/nest11/node_modules'), [...requiredPeers(), ...platforms]);
  linkPackages(dir, join(root, 'node_modules'), others);
  return dir;
}

function linkPackages(dir: string, from: string, names: readonly string[]): void {
  for (const name of names) {
    const link = join(dir, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(from, name), link, 'dir');
  }
}

export function removeApp(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}

async function fillApp(dir: string, tarball: Tarball, type: string): Promise<string> {
  cpSync(apps, dir, { recursive: true });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'app', private: true, type }));
  // What the package depends on was downloaded with the repository's own; its peers are there.
  await npm(['install', '--prefer-offline', '--legacy-peer-deps', tarball.file], dir);
  return dir;
}

function requiredPeers(): string[] {
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as {
    peerDependencies: Record<string, string>;
    peerDependenciesMeta: Record<string, { optional?: boolean }>;
  };
  return Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
}

async function npm(args: readonly string[], cwd: string): Promise<string> {
  const finished = await runToEnd('npm', [...args, '--no-audit', '--no-fund'], { cwd });
  if (finished.code !== 0) throw new Error(`npm ${args[0]} failed:\n${finished.output}`);
  return finished.stdout;
}
