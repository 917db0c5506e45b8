import { fileURLToPath } from 'node:url';
import { runToEnd } from './run-to-end.js';

export const root = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

/** Long enough for a `beforeAll` that has to build everything first. */
export const BUILD_TIMEOUT_MS = 180_000;

/** Makes dist, dist-cjs and build/ match their sources. Costs nothing where they do. */
export async function ensureBuilt(): Promise<void> {
  const { code, output } = await runToEnd(process.execPath, ['scripts/ensure-built.mjs'], {
    cwd: root,
  });
  if (code !== 0) throw new Error(`the build failed:\n${output}`);
}
