// Writes what is made of the schema of the configuration: the JSON Schema for editors, and the
// tables in docs/configuration-*.md.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import prettier from 'prettier';
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot, modules } from './support/root.mjs';
import { withTables } from './support/schema-tables.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const { editorSchema } = await import(`${modules}/config/schema/document.schema.js`);
  const schema = editorSchema();
  await mkdir(inRoot('schema'), { recursive: true });
  await writeFile(inRoot('schema/weir.schema.json'), `${JSON.stringify(schema, null, 1)}\n`);
  for (const part of ['limits', 'resilience', 'alerts']) {
    const page = inRoot(`docs/configuration-${part}.md`);
    const text = withTables(await readFile(page, 'utf8'), schema);
    const style = await prettier.resolveConfig(page);
    await writeFile(page, await prettier.format(text, { ...style, filepath: page }));
  }
});
