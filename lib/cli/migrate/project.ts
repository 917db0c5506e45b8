import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative, resolve, sep } from 'node:path';
import type ts from 'typescript';
import { CommandFailedError } from '../command.js';

const LEFT_OUT = new Set(['node_modules', 'dist', 'build', 'coverage', 'out', 'tmp']);
const SOURCE = /\.(ts|mts|cts|tsx)$/;
const DECLARATIONS = /\.d\.(ts|mts|cts)$/;

export const PACKAGES = [
  '@nestjs/throttler',
  '@nest-lab/throttler-storage-redis',
  'nestjs-throttler-storage-redis',
] as const;

/** A file of the project, by its path from the project's directory. */
export interface ProjectFile {
  readonly file: string;
  readonly text: string;
}

/** The folder that is moved over. */
export class Project {
  readonly root: string;
  /** Something in it reads the headers that the throttler writes. */
  readsHeaders = false;

  constructor(directory: string) {
    this.root = resolve(directory);
    if (!existsSync(join(this.root, 'package.json'))) {
      throw new CommandFailedError(
        `${directory}: no package.json there; name the folder of a project`,
      );
    }
  }

  /** Every source that speaks of the throttler, and every package.json that has it. */
  files(): ProjectFile[] {
    const found: ProjectFile[] = [];
    const walk = (directory: string): void => {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        const path = join(directory, entry.name);
        if (entry.isDirectory()) {
          if (!LEFT_OUT.has(entry.name) && !entry.name.startsWith('.')) walk(path);
          continue;
        }
        const isSource = SOURCE.test(entry.name) && !DECLARATIONS.test(entry.name);
        if (!entry.isFile() || (!isSource && entry.name !== 'package.json')) continue;
        const text = readFileSync(path, 'utf8');
        this.readsHeaders ||= /['"`]x-ratelimit-/i.test(text);
        if (!/throttl/i.test(text)) continue;
        found.push({ file: relative(this.root, path).split(sep).join('/'), text });
      }
    };
    walk(this.root);
    return found.sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  /** The project's own TypeScript reads its sources as its compiler does. */
  typescript(): typeof ts {
    try {
      return createRequire(join(this.root, 'package.json'))('typescript') as typeof ts;
    } catch (cause) {
      throw new CommandFailedError(
        `${this.root} has no TypeScript that could read its sources: npm install --save-dev typescript`,
        { cause },
      );
    }
  }

  /** The files that are to be written and that git could not bring back. */
  unsaved(files: readonly string[]): readonly string[] {
    const args = ['status', '--porcelain', '--untracked-files=all', '--ignored', '--', ...files];
    try {
      const out = execFileSync('git', args, {
        cwd: this.root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      return out.split('\n').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
    } catch {
      return files;
    }
  }
}

/** The package.json with the one package in the place of the other. `keeps` are those that something still needs. */
export function movedPackage(text: string, keeps: ReadonlySet<string>, version: string): string {
  const json = JSON.parse(text) as Record<string, unknown>;
  let isChanged = false;
  for (const section of ['dependencies', 'devDependencies', 'peerDependencies']) {
    const packages = json[section] as Record<string, string> | undefined;
    if (packages?.['@nestjs/throttler'] === undefined) continue;
    isChanged = true;
    const moved = Object.entries(packages).filter(
      ([name]) => !(PACKAGES as readonly string[]).includes(name) || keeps.has(name),
    );
    moved.push(['nestjs-weir', `^${version}`]);
    json[section] = Object.fromEntries(moved.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  if (!isChanged) return text;
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? '  ';
  return JSON.stringify(json, null, indent) + (text.endsWith('\n') ? '\n' : '');
}
