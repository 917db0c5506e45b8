import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { MissingPackageError, WrongPackageError } from '../common/errors.js';

/** Optional peers, and the least version of each that is known to work: as in `peerDependencies`. */
export const LEAST = {
  ioredis: '5.4',
  '@grpc/grpc-js': '1.10',
  '@opentelemetry/api': '1.9',
  'prom-client': '15.1',
} as const;

export type OptionalPackage = keyof typeof LEAST;

/** An optional peer, for what needs it. Throws the command to run if it is missing, or too old. */
export function optionalPackage<T>(name: OptionalPackage, purpose: string): T {
  const load = createRequire(import.meta.url);
  let file: string;
  try {
    file = load.resolve(name);
  } catch (cause) {
    throw new MissingPackageError(name, purpose, { cause });
  }
  checkVersion(name, versionAbove(dirname(file), name), purpose);
  return load(file) as T;
}

/** A version that nobody can tell is taken for a right one. */
export function checkVersion(
  name: OptionalPackage,
  version: string | undefined,
  purpose: string,
): void {
  const [major = 0, minor = 0] = numbersOf(version ?? LEAST[name]);
  const [leastMajor = 0, leastMinor = 0] = numbersOf(LEAST[name]);
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  throw new WrongPackageError(name, LEAST[name], version!, purpose);
}

const numbersOf = (version: string): number[] => version.split('.').map(Number);

/** The version in the package.json of that name, which `exports` may hide from `require`. */
function versionAbove(folder: string, name: string): string | undefined {
  const path = join(folder, 'package.json');
  if (existsSync(path)) {
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as { name?: string; version?: string };
    if (manifest.name === name) return manifest.version;
  }
  const above = dirname(folder);
  return above === folder ? undefined : versionAbove(above, name);
}
