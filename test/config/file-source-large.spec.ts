import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { FileSource } from '../../lib/config/sources/file-source.js';
import { makeTempDir, stopAll } from '../support/processes.js';

afterAll(stopAll);

it('reads a large file beside the event loop', async () => {
  const keys = Array.from({ length: 90_000 }, (_, i) => `k${i}: 1`).join('\n');
  const file = join(makeTempDir(), 'large.yaml');
  writeFileSync(file, keys);
  const before = performance.eventLoopUtilization();
  await expect(new FileSource(file).read()).rejects.toThrow('more than 20000 keys');
  const { active, idle } = performance.eventLoopUtilization(before);
  // The other thread works: a loop that reads by itself would hardly ever rest.
  expect(idle).toBeGreaterThan(active);
});
