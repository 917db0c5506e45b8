import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { PAGES } from './markdown.js';

/** `npm run docs` builds it, and fails on links that lead nowhere; these are what it cannot know. */
describe('the site', () => {
  it('has every page in its sidebar, once', async () => {
    const sidebar = (await import(join(root, 'docs/site/sidebar.mjs'))) as {
      SIDEBAR_PAGES: readonly string[];
    };
    const docs = PAGES.filter((page) => page.startsWith('docs/'));
    const pages = docs.map((page) => page.slice('docs/'.length, -'.md'.length));
    expect(sidebar.SIDEBAR_PAGES.toSorted()).toEqual([...pages, 'changelog', 'security'].sort());
  });

  it('has a reference of every entry of the package', async () => {
    const { ENTRIES } = (await import(join(root, 'scripts/support/entries.mjs'))) as {
      ENTRIES: Readonly<Record<string, unknown>>;
    };
    const { entryPoints } = JSON.parse(
      readFileSync(join(root, 'docs/site/typedoc.json'), 'utf8'),
    ) as { entryPoints: readonly string[] };
    const names = entryPoints.map((path) => /lib\/(\w+)/.exec(path)![1]!);
    expect(names.sort()).toEqual(Object.keys(ENTRIES).sort());
  });

  it('shows pages as the repository does', async () => {
    const { sitePage } = (await import(join(root, 'scripts/support/site-page.mjs'))) as {
      sitePage: (markdown: string) => string;
    };
    const page =
      '<!-- run -->\n[a](../CHANGELOG.md#b) `{{ x < y }}` `{ x }` [c](docs/d.md) <img src="e.jpg">\n\n```ts\n{{ z }}\n```\n';
    expect(sitePage(page)).toBe(
      '\n[a](changelog.md#b) <code v-pre>{{ x &lt; y }}</code> `{ x }` [c](d.md) <img src="./e.jpg">\n\n```ts\n{{ z }}\n```\n',
    );
  });
});
