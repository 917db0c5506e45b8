// Writes what is made of the schema of the configuration: the JSON Schema for editors, and the
// tables in docs/configuration-*.md.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot, modules } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { withTables } from './support/schema-tables.mjs';
import { main, mustPass } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const { editorSchema } = await import(`${modules}/config/schema/document.schema.js`);
  const schema = editorSchema();
  await mkdir(inRoot('schema'), { recursive: true });
  // Lines show what has changed; indents would be a third of the file, which every installation has.
  const lines = JSON.stringify(schema, null, 1).replace(/^ +/gm, '');
  await writeFile(inRoot('schema/weir.schema.json'), `${lines}\n`);
  const pages = ['limits', 'resilience', 'alerts'].map((part) =>
    inRoot(`docs/configuration-${part}.md`),
  );
  for (const page of pages) {
    await writeFile(page, withTables(await readFile(page, 'utf8'), schema));
  }
  mustPass(await runNode(['node_modules/oxfmt/bin/oxfmt', ...pages]));
});
