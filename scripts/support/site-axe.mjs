// What axe finds on the site, in light and in dark, that keeps people from using it.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { readFile, readdir } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const axeSource = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const TYPES = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

/** Of every page of the guides, and of one of the reference for each entry. */
export async function seriousFindings(directory, only = []) {
  const server = await serve(directory);
  const { port } = server.address();
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const found = [];
  try {
    const all = (await readdir(directory)).filter((name) => name.endsWith('.html'));
    const names = all.filter((name) => only.length === 0 || only.includes(name));
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({ colorScheme });
      for (const name of [...names, 'reference/index.html']) {
        await page.goto(`http://127.0.0.1:${port}/${name}`);
        await page.addScriptTag({ path: axeSource });
        const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations);
        const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
        for (const { id, nodes } of serious) {
          found.push(
            `${name} (${colorScheme}): ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 160)}`,
          );
        }
      }
      await page.close();
    }
    console.log(
      `axe: ${names.length + 1} pages in light and dark, ${found.length} serious findings`,
    );
    return found;
  } finally {
    await browser.close();
    server.close();
  }
}

async function serve(directory) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://site').pathname);
    readFile(join(directory, path)).then(
      (body) => response.setHeader('content-type', TYPES[extname(path)] ?? 'image/jpeg').end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
