import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from '../../lib/cli/run-command.js';
import { root } from '../setup/ensure-built.js';
import { makeTempDir } from '../support/processes.js';

export const PACKAGE = JSON.stringify(
  { name: 'shop', dependencies: { '@nestjs/core': '^12.0.0', '@nestjs/throttler': '^6.4.0' } },
  null,
  2,
);

/** A project with these sources, in git unless told otherwise. `typescript` is the package of this repository that it has. */
export function project(
  files: Record<string, string>,
  { isSaved = true, typescript = 'typescript' } = {},
): string {
  const dir = makeTempDir();
  for (const [file, text] of Object.entries({ 'package.json': `${PACKAGE}\n`, ...files })) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), text);
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: dir, stdio: 'ignore' });
  if (isSaved) {
    writeFileSync(join(dir, '.gitignore'), 'node_modules\n');
    git('init');
    git('add', '.');
    git('-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '-m', 'as it was');
  }
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(join(root, 'node_modules', typescript), join(dir, 'node_modules/typescript'));
  return dir;
}

export async function migrate(
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCommand(['migrate', ...args], {
    log: (text) => (out += `${text}\n`),
    error: (text) => (err += `${text}\n`),
  });
  return { code, out, err };
}

export const written = (dir: string, file: string): string => readFileSync(join(dir, file), 'utf8');

/** Without line breaks and the commas before them, which are the formatter's business. */
export const flat = (code: string): string =>
  code
    .replace(/\s+/g, ' ')
    .replace(/,? ([}\])])/g, '$1')
    .replace(/([{[(]) /g, '$1');

/** One source, moved over. */
export async function moved(source: string, more: Record<string, string> = {}): Promise<string> {
  const dir = project({ 'src/a.ts': source, ...more });
  await migrate(dir, '--write');
  return written(dir, 'src/a.ts');
}

const page = readFileSync(join(root, 'docs/migrating-from-throttler.md'), 'utf8');

/** A program of the page on migrating. */
export function codeOf(mark: string): string {
  return new RegExp(`<!-- ${mark} -->\\s*\`\`\`ts\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)![1]!;
}

/** Two throttlers for all routes. */
export const GLOBAL = `
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [ThrottlerModule.forRoot([{ name: 'short', ttl: 1000, limit: 3 }, { name: 'long', ttl: 60000, limit: 100 }])],
  providers: [Other, { provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`;
