import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = ['architecture', 'architecture-walks']
  .map((name) => readFileSync(join(root, `docs/${name}.md`), 'utf8'))
  .join('\n');

/** Rooms, and what stands in one of them: `limits/route-table`, `core/recovery`, names without a room left out. */
const ROOMS =
  /^(alerts|algorithms|cli|common|config|core|dashboard|degradation|export|fleet|limiter|limits|local|lua|observability|overload|protection|requests|scripts|stores|test|transports)\//;

describe('the pages on the architecture', () => {
  const named = [...page.matchAll(/`([a-z0-9./-]+)`/g)]
    .map(([, name]) => name!)
    .filter((name) => ROOMS.test(name));

  it('names many files', () => {
    expect(named.length).toBeGreaterThan(40);
  });

  it.each([...new Set(named)])('names %s, which is there', (name) => {
    const places = [`lib/${name}`, `lib/degradation/${name}`, `lib/observability/${name}`, name];
    const found = places.some((place) => {
      return existsSync(join(root, place)) || existsSync(join(root, `${place}.ts`));
    });
    expect(found).toBe(true);
  });
});
