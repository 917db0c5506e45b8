import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { PAGES, readPage, withoutBlocks } from './markdown.js';

const FILES = [...PAGES, 'CHANGELOG.md', 'SECURITY.md'];

/** Code has brackets that are no links, and lines with # that are no headings. */
function prose(markdown: string): string {
  return withoutBlocks(markdown).replace(/`[^`\n]*`/g, (code) => code.replace(/[()[\]]/g, ' '));
}

/** The anchors of a page, by the rule of GitHub and npm. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of prose(markdown).matchAll(/^#{1,6} (.*)$/gm)) {
    const text = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
    let name = anchor;
    for (let i = 1; anchors.has(name); i++) name = `${anchor}-${i}`;
    anchors.add(name);
  }
  return anchors;
}

/** Targets of a page: links, images, and those of HTML. */
function targetsOf(markdown: string): string[] {
  const text = prose(markdown);
  return [
    ...[...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!),
    ...[...text.matchAll(/(?:href|src|srcset)="([^"]+)"/g)].map(([, target]) => target!),
  ].filter((target) => !/^[a-z]+:/.test(target));
}

/** The fault of a link of a file, if it has one. */
function faultOf(file: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const page = path === '' ? file : relative(root, join(root, dirname(file), path));
  if (!existsSync(join(root, page))) return `${file}: ${target} is not there`;
  if (anchor === undefined || anchorsOf(readPage(page)).has(anchor)) return undefined;
  return `${file}: ${target} has no such heading`;
}

describe('links', () => {
  it('are found, with their anchors', () => {
    expect(targetsOf('[a](docs/a.md#b) ![c](d.svg) <img src="e.svg"> `[f](g)`')).toEqual([
      ...['docs/a.md#b', 'd.svg', 'e.svg'],
    ]);
    expect([...anchorsOf('# `@Protect`: a, b\n\n## See [x](y)\n\n## See x\n')]).toEqual([
      ...['protect-a-b', 'see-x', 'see-x-1'],
    ]);
    expect(faultOf('README.md', 'docs/nowhere.md')).toContain('is not there');
    expect(faultOf('README.md', 'docs/errors.md#nowhere')).toContain('no such heading');
  });

  it.each(FILES)('of %s lead somewhere', (file) => {
    const faults = targetsOf(readPage(file)).map((target) => faultOf(file, target));
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('of messages and comments lead to pages, and none to what README no longer has', () => {
    const files = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join('lib', name));
    const texts = files.map((file) => [file, readFileSync(join(root, file), 'utf8')] as const);
    const faults = texts.flatMap(([, text]) =>
      [...text.matchAll(/\bdocs\/[\w-]+\.md(?:#[\w-]+)?/g)].map(([target]) =>
        faultOf('README.md', target),
      ),
    );
    expect(faults.length).toBeGreaterThan(2);
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
    expect(texts.filter(([, text]) => text.includes('README')).map(([file]) => file)).toEqual([]);
  });

  it('reach every page from the front page', () => {
    const reached = new Set(['README.md']);
    for (const page of reached) {
      for (const target of targetsOf(readPage(page))) {
        const [path = ''] = target.split('#');
        const next = path === '' ? page : relative(root, join(root, dirname(page), path));
        if (next.endsWith('.md') && existsSync(join(root, next))) reached.add(next);
      }
    }
    expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
  });
});
