import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../setup/ensure-built.js';
import { makeTempDir } from '../processes.js';

export const NEST_MAJORS = [12, 11] as const;
export type NestMajor = (typeof NEST_MAJORS)[number];

/** Where the compiled apps of the tests run on that Nest. */
export function directoryOf(major: NestMajor): string {
  return major === 12 ? join(root, 'build') : directoryOnNest11();
}

let onNest11: string | undefined;

/**
 * The built package and the compiled apps in a directory where `@nestjs/*` is Nest 11. The package is
 * copied: Node looks for the neighbours of what a link points to, and there it is Nest 12.
 */
function directoryOnNest11(): string {
  // Another spec of this worker may have removed it at its end.
  if (onNest11 !== undefined && existsSync(onNest11)) return onNest11;
  const dir = makeTempDir();
  const modules = join(dir, 'node_modules');
  for (const part of ['package.json', 'assets', 'dist', 'dist-cjs', 'lua']) {
    cpSync(join(root, part), join(modules, 'nestjs-weir', part), { recursive: true });
  }
  for (const scope of ['@nestjs', '@grpc', 'rxjs', 'reflect-metadata']) {
    link(join(root, 'test/nest11/node_modules', scope), join(modules, scope));
  }
  for (const name of ['ioredis', ...dependencies()]) {
    link(join(root, 'node_modules', name), join(modules, name));
  }
  cpSync(join(root, 'build/test'), join(dir, 'test'), { recursive: true });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  return (onNest11 = dir);
}

/** The packages that come with this one wherever it is installed. */
function dependencies(): string[] {
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  return Object.keys((JSON.parse(text) as { dependencies: object }).dependencies);
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'dir');
}
