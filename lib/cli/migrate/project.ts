import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative, resolve, sep } from 'node:path';
import type ts from 'typescript';
import { CommandFailedError } from '../command.js';

const LEFT_OUT = new Set(['node_modules', 'dist', 'build', 'coverage', 'out', 'tmp']);
const SOURCE = /\.(ts|mts|cts|tsx)$/;
const DECLARATIONS = /\.d\.(ts|mts|cts)$/;

const SECTIONS = ['dependencies', 'devDependencies', 'peerDependencies'];

/** The throttler's names, or headers that only it writes. */
const SPEAKS = /throttl|['"`/^](x-ratelimit-\w+|retry-after)-\w/i;

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
        if (!SPEAKS.test(text)) continue;
        found.push({ file: relative(this.root, path).split(sep).join('/'), text });
      }
    };
    walk(this.root);
    return found.sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  /** The project's own TypeScript reads its sources as its compiler does. */
  typescript(): typeof ts {
    const found = this.installedTypescript();
    // Since 7 the package is a compiler and its version, and no API that others could call.
    if (typeof found.createSourceFile === 'function') return found as typeof ts;
    throw new CommandFailedError(
      `weir migrate needs the compiler API, which TypeScript ${found.version} of this project does not have: ` +
        `npm install --no-save typescript@6, and run it again; npm install puts ${found.version} back`,
    );
  }

  private installedTypescript(): Partial<typeof ts> {
    try {
      return createRequire(join(this.root, 'package.json'))('typescript') as Partial<typeof ts>;
    } catch (cause) {
      throw new CommandFailedError(
        `${this.root} has no TypeScript that could read its sources: npm install --save-dev typescript@6`,
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
      const unsaved = out.split('\n').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
      return unsaved.filter((file) => !this.isInstallOnly(file));
    } catch {
      return files;
    }
  }

  /** Whether a package.json differs from what git has by nothing but this library, as `npm install` has put it there. */
  private isInstallOnly(file: string): boolean {
    if (!/(^|\/)package\.json$/.test(file)) return false;
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: this.root, encoding: 'utf8', stdio: 'pipe' });
    try {
      // git tells paths from the top of its tree.
      const path = join(git('rev-parse', '--show-toplevel').trim(), file);
      const saved = git('show', `HEAD:${file}`);
      return withoutWeir(readFileSync(path, 'utf8')) === withoutWeir(saved);
    } catch {
      return false;
    }
  }
}

/** The text of a package.json without this library, its packages in the order of their names. */
function withoutWeir(text: string): string {
  const json = JSON.parse(text) as Record<string, Record<string, string> | undefined>;
  for (const section of SECTIONS) {
    const entries = Object.entries(json[section] ?? {}).filter(([name]) => name !== 'nestjs-weir');
    json[section] = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  return JSON.stringify(json);
}

/** The package.json with the one package in the place of the other. `keeps` are those that something still needs. */
export function movedPackage(text: string, keeps: ReadonlySet<string>, version: string): string {
  const json = JSON.parse(text) as Record<string, unknown>;
  const sectionOf = (name: string) => json[name] as Record<string, string> | undefined;
  // One that is there already is as somebody wanted it.
  const isThere = SECTIONS.some((section) => sectionOf(section)?.['nestjs-weir'] !== undefined);
  let isChanged = false;
  for (const section of SECTIONS) {
    const packages = sectionOf(section);
    if (packages?.['@nestjs/throttler'] === undefined) continue;
    const moved = Object.entries(packages).filter(
      ([name]) => !(PACKAGES as readonly string[]).includes(name) || keeps.has(name),
    );
    if (!isThere) moved.push(['nestjs-weir', `^${version}`]);
    if (isThere && moved.length === Object.keys(packages).length) continue;
    isChanged = true;
    json[section] = Object.fromEntries(moved.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  if (!isChanged) return text;
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? '  ';
  return JSON.stringify(json, null, indent) + (text.endsWith('\n') ? '\n' : '');
}
