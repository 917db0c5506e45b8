import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../lib/cli/run-command.js';
import { checkDocument, checkLayer } from '../../lib/config/schema/check.js';
import { SECTIONS, editorSchema } from '../../lib/config/schema/document.schema.js';
import { parseText } from '../../lib/config/sources/parse-text.js';
import { tableBelow } from '../package/markdown.js';
import { root } from '../setup/ensure-built.js';
import { faultsOf } from './faults.js';

const page = readFileSync(join(root, 'docs/configuration.md'), 'utf8');

const readDoc = (name: string): string => readFileSync(join(root, `docs/${name}.md`), 'utf8');
/** The pages with the fields of the document, section by section. */
const FIELDS = ['limits', 'resilience', 'alerts'].map((part) => `configuration-${part}`);

const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, code]) => code!,
  );

const HINT = 'Run: npm run schema';

describe('the schema for editors', () => {
  it('is that of the code', () => {
    const stored: unknown = JSON.parse(readFileSync(join(root, 'schema/weir.schema.json'), 'utf8'));
    // Compared as texts: the order of the fields is what editors show.
    expect(`${HINT}\n${JSON.stringify(stored)}`).toBe(`${HINT}\n${JSON.stringify(editorSchema())}`);
  });

  it('describes every field', () => {
    const silent: string[] = [];
    const look = (schema: unknown, path: string): void => {
      if (typeof schema !== 'object' || schema === null) return;
      for (const [name, inner] of Object.entries(schema)) look(inner, `${path}.${name}`);
      const { properties = {} } = schema as { properties?: Record<string, object> };
      for (const [name, field] of Object.entries(properties)) {
        const isTold =
          'description' in field ||
          '$ref' in field ||
          ['$schema', 'header', 'param', 'arg', 'calls'].includes(name);
        if (!isTold) silent.push(`${path}.${name}`);
      }
    };
    look(editorSchema(), '');
    expect(silent).toEqual([]);
  });

  it('is where the page says', () => {
    const [, path] = /\$schema=\.\/node_modules\/nestjs-weir\/(\S+)/.exec(page)!;
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    expect(manifest.exports['./schema.json']).toBe(`./${path}`);
  });
});

describe('the pages on the configuration', () => {
  it('has every field, its default and its meaning', async () => {
    const script = join(root, 'scripts/support/schema-tables.mjs');
    const { tablesIn, withTables } = (await import(script)) as {
      tablesIn: (text: string) => string[];
      withTables: (text: string, schema: object) => string;
    };
    const fields = FIELDS.map(readDoc).join('\n');
    expect(tablesIn(fields)).toEqual(['document', ...SECTIONS]);
    expect(`${HINT}\n${cells(fields)}`).toBe(
      `${HINT}\n${cells(withTables(fields, editorSchema()))}`,
    );
  });

  /** Prettier makes columns wider; that is no difference. */
  const cells = (text: string): string =>
    text
      .split('\n')
      .filter((line) => line !== '' && !/^\|[ -|]+\|$/.test(line))
      .map((line) => line.replace(/ *\| */g, '|'))
      .join('\n');

  it('has examples that are right', async () => {
    const [whole, layer] = blocks('yaml');
    expect(blocks('yaml')).toHaveLength(2);
    expect(checkDocument(await parseText(whole!, 'a.yaml')).version).toBe(3);
    expect(checkLayer(await parseText(layer!, 'b.yaml'))).toMatchObject({
      policies: { legacy: null },
    });
  });

  it('shows the faults of its example as they are told', async () => {
    const [text] = blocks('yaml');
    const wrong = text!
      .replace('key: user', 'key: user\n    brust: 5')
      .replace('burst: 8000', 'burst: 400')
      .replace('profile: normal', 'profile: promi');
    const [shown] = blocks('text');
    const value = await parseText(wrong, 'a.yaml');
    const told = faultsOf(() => checkDocument(value));
    expect(shown!.trim().split('\n')).toEqual([
      'weir.yaml: 3 faults',
      ...told.map((fault) => `  ${fault}`),
    ]);
  });

  it('has every command', () => {
    const rows = [...tableBelow(readDoc('command-line'), 'The command line').keys()];
    expect(rows).toEqual(COMMANDS.map(({ name, takes }) => `${name} ${takes}`.trim()));
  });
});
