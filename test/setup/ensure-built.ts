import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runToEnd } from './run-to-end.js';

/** The repository, also for what is compiled into build/: the suites of the bench start servers by it. */
export const root = repositoryOf(dirname(fileURLToPath(import.meta.url)));

function repositoryOf(directory: string): string {
  const isIt = existsSync(join(directory, 'package.json'));
  return isIt ? directory : repositoryOf(dirname(directory));
}

/** Long enough for a `beforeAll` that has to build everything first. */
export const BUILD_TIMEOUT_MS = 300_000;

/** Makes dist, dist-cjs and build/ match their sources. Costs nothing where they do. */
export async function ensureBuilt(): Promise<void> {
  const { code, output } = await runToEnd(process.execPath, ['scripts/ensure-built.mjs'], {
    cwd: root,
  });
  if (code !== 0) throw new Error(`the build failed:\n${output}`);
}
