import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';

/** Names that are not exported, although a declaration has them. */
const HIDDEN = [
  // The class that the line is injected by, where only limits know of it.
  'Admission, of Overload',
  // Gives the compiler one object to speak of.
  ...['Flat, of PolicyInput', 'Flat, of RoutePolicy'],
  // Documents have the types of the schemas that check them.
  ...['Alerts', 'App', 'Cluster', 'Degradation', 'Overload', 'Policy', 'Protection'].map(
    (section) => `Passing, of ${section}Document`,
  ),
  'Passing, of AlertsInput',
].sort();

interface Report {
  readonly text: string;
  readonly hidden: readonly string[];
}

interface Entries {
  readonly ENTRIES: Record<string, readonly string[]>;
  entryFields(): object;
}

let entries: Entries;
let report: Report;

beforeAll(async () => {
  await ensureBuilt();
  const load = (name: string): Promise<unknown> =>
    import(join(root, `scripts/support/${name}.mjs`));
  entries = (await load('entries')) as Entries;
  const { apiReport } = (await load('api-report')) as {
    apiReport: (folder: string, entries: readonly string[]) => Report;
  };
  report = apiReport(join(root, 'dist-cjs'), Object.keys(entries.ENTRIES));
}, BUILD_TIMEOUT_MS);

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('the public API', () => {
  it('is what etc/api-report.txt says: after a change that is meant, run `npm run api-report`', () => {
    expect(report.text.split('\n')).toEqual(read('etc/api-report.txt').split('\n'));
  });

  it('exports the types that its declarations name', () => {
    expect(report.hidden).toEqual(HIDDEN);
  });

  it('names no type of an optional peer outside of the entry that needs it', () => {
    const optional = Object.entries(entries.ENTRIES).filter(([, peers]) => peers.length > 0);
    const needing = optional.map(([name]) => name);
    const others = Object.keys(entries.ENTRIES).filter((name) => !needing.includes(name));
    const chunks = readdirSync(join(root, 'dist-cjs/chunks')).filter((name) =>
      /\.d\.ts$/.test(name),
    );
    const files = [
      ...others.map((name) => `${name}.d.ts`),
      ...chunks.map((name) => `chunks/${name}`),
    ];
    for (const file of files) {
      expect(read(`dist-cjs/${file}`)).not.toMatch(/from '(?!\.|@nestjs\/co|rxjs|node:)/);
    }
  });

  it('has the entries in package.json that the build makes', () => {
    const manifest = JSON.parse(read('package.json')) as object;
    expect(manifest).toMatchObject(entries.entryFields());
  });
});
