// Builds the site of docs/ into docs/site/dist: the pages, and the reference of every exported name.
// `--serve` shows it; `--axe` has axe look at it in Chromium (CHROMIUM, or /usr/bin/chromium).
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { ensureInstall, ensureSite } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { run } from './support/run.mjs';
import { sitePage } from './support/site-page.mjs';
import { main, StepError, step } from './support/step.mjs';

const site = (...parts) => inRoot('docs/site', ...parts);
const pages = (...parts) => site('pages', ...parts);

await main(async () => {
  await ensureInstall();
  await ensureSite();
  await step('pages', collectPages);
  await step('reference', () =>
    tool('typedoc/bin/typedoc', ['--options', site('typedoc.json')], inRoot()),
  );
  await step('site', () => tool('vitepress/bin/vitepress.js', ['build', pages()], site()));
  if (process.argv.includes('--axe')) {
    const { seriousFindings } = await import('./support/site-axe.mjs');
    const found = await seriousFindings(site('dist'));
    if (found.length > 0) throw new StepError(found.join('\n'));
  }
  if (process.argv.includes('--serve')) {
    await tool('vitepress/bin/vitepress.js', ['preview', pages()], site());
  }
});

/** The pages as they are, with what they link to outside docs/; what GitHub shows is what the site shows. */
async function collectPages() {
  await rm(pages(), { recursive: true, force: true });
  await mkdir(pages('.vitepress'), { recursive: true });
  await cp(site('vitepress.config.mjs'), pages('.vitepress/config.mjs'));
  await cp(site('sidebar.mjs'), pages('.vitepress/sidebar.mjs'));
  await cp(site('theme.mjs'), pages('.vitepress/theme/index.mjs'));
  await cp(site('theme.css'), pages('.vitepress/theme/theme.css'));
  await cp(site('index.md'), pages('index.md'));
  for (const name of await readdir(inRoot('docs'))) {
    if (/\.(svg|jpg|png)$/.test(name)) await cp(inRoot('docs', name), pages(name));
    if (name.endsWith('.md')) await write(name, inRoot('docs', name));
  }
  await write('changelog.md', inRoot('CHANGELOG.md'));
  await write('security.md', inRoot('SECURITY.md'));
}

async function write(name, from) {
  await writeFile(pages(name), sitePage(await readFile(from, 'utf8')));
}

async function tool(path, args, cwd) {
  const { code, output } = await run('node', [site('node_modules', path), ...args], { cwd });
  if (code !== 0) throw new StepError(output.trim(), code);
}
