import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { makeTempDir, stopAll } from '../support/processes.js';
import { codeOf, GLOBAL, migrate, PACKAGE, project, written } from './migrated-project.js';

afterAll(stopAll);

describe('the command weir migrate', () => {
  it('shows everything first, and writes nothing unless told to', async () => {
    const dir = project({ 'src/app.ts': codeOf('before') });
    const { code, out } = await migrate(dir);
    expect(code).toBe(0);
    expect(out).toContain('--- a/src/app.ts\n+++ b/src/app.ts\n@@ -1,');
    expect(out).toContain(
      "-  @Throttle({ default: { limit: 3, ttl: 60000 } })\n+  @RateLimit({ algorithm: 'sliding-window', rate: '3/min' }, { instead: 'default' })",
    );
    expect(out).toContain('-    "@nestjs/throttler": "^6.4.0"\n+    "nestjs-weir": "^');
    expect(out).toContain('2 files would change. Nothing was written: run it again with --write.');
    expect(written(dir, 'src/app.ts')).toBe(codeOf('before'));
  });

  it('writes nothing that git could not bring back, unless it is forced to', async () => {
    const dir = project({ 'src/app.ts': codeOf('before') });
    writeFileSync(join(dir, 'src/app.ts'), `${codeOf('before')}\n// not saved\n`);
    const refused = await migrate(dir, '--write');
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toBe(
      'Nothing was written: git could not bring back src/app.ts. Commit first, or say --force.\n',
    );
    expect(written(dir, 'src/app.ts')).toContain('Throttle(');
    expect((await migrate(dir, '--write', '--force')).code).toBe(0);
    expect(written(dir, 'src/app.ts')).not.toContain('Throttle(');
  });

  it('refuses what is no project, and one without TypeScript', async () => {
    const none = await migrate(makeTempDir());
    expect(none).toMatchObject({ code: 1, out: '' });
    expect(none.err).toMatch(/no package\.json there; name the folder of a project\n$/);
    const bare = makeTempDir();
    writeFileSync(join(bare, 'package.json'), PACKAGE);
    expect((await migrate(bare)).err).toMatch(
      /has no TypeScript .*: npm install --save-dev typescript@6\n$/,
    );
    const unsaved = project({ 'src/app.ts': codeOf('before') }, { isSaved: false });
    expect((await migrate(unsaved, '--write')).err).toContain('git could not bring back');
    expect((await migrate('a', 'b')).code).toBe(2);
  });

  it('says which TypeScript to put there for a while where that of the project has no API', async () => {
    const typescript = 'typescript-native';
    const { version } = createRequire(import.meta.url)(typescript) as { version: string };
    const dir = project({ 'src/app.ts': codeOf('before') }, { typescript });
    expect(await migrate(dir)).toEqual({
      code: 1,
      out: '',
      err:
        `weir migrate needs the compiler API, which TypeScript ${version} of this project does not have: ` +
        `npm install --no-save typescript@6, and run it again; npm install puts ${version} back\n`,
    });
    const without = project({ 'src/a.ts': 'export {};\n' }, { typescript });
    writeFileSync(join(without, 'package.json'), '{}');
    expect(await migrate(without)).toMatchObject({ code: 0, err: '' });
  });

  it('writes nothing that it has not shown, whatever it is given', async () => {
    const files = {
      'src/app.module.ts': GLOBAL,
      'src/broken.ts': 'import { Throttle } from "@nestjs/throttler";\nclass {',
      'src/limits.ts': "export { Throttle as Slow, SkipThrottle } from '@nestjs/throttler';\n",
      // Uses what another file exports on: it does not name the throttler, and is not touched.
      'src/user.ts':
        "import { Slow } from './limits';\nexport class A { @Slow({ default: { limit: 1, ttl: 1 } }) b() {} }\n",
      'src/alias.ts':
        "import { Throttle as T } from '@nestjs/throttler';\nexport class A { @T({ short: { limit: 1, ttl: 1000 } }) b() {} }\n",
      'src/text.ts': "export const text = 'ThrottlerModule of @nestjs/throttler';\n",
      'README.md': 'We use @nestjs/throttler.\n',
    };
    const dir = project(files);
    const shown = await migrate(dir);
    const done = await migrate(dir, '--write');
    expect([shown.code, done.code]).toEqual([1, 1]);
    const told = (out: string) => [...out.matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, file]) => file!);
    expect(told(done.out)).toEqual(told(shown.out));
    const changed = Object.entries(files)
      .filter(([file, text]) => written(dir, file) !== text)
      .map(([file]) => file);
    expect(changed.sort()).toEqual(['src/alias.ts', 'src/app.module.ts']);
    expect(told(shown.out)).toEqual(expect.arrayContaining(changed));
    for (const line of written(dir, 'src/alias.ts').trim().split('\n')) {
      expect(shown.out).toContain(`+${line}`);
    }
    expect(shown.out).toContain('src/limits.ts:1  exports names of the throttler on');
    expect(shown.out).toContain('src/broken.ts:2  cannot be read (');
  });

  it.each([
    ['nothing to do', { 'src/a.ts': 'export {};\n' }, [], 0],
    ['all moved', { 'src/app.ts': GLOBAL }, ['--write'], 0],
    ['something is left', { 'src/a.ts': "export * from '@nestjs/throttler';\n" }, [], 1],
    ['a broken package.json', { 'package.json': '{ "dependencies": { "@nestjs/throttler"' }, [], 1],
    ['an unknown option', { 'src/app.ts': GLOBAL }, ['--wirte'], 2],
    ['too many words', { 'src/app.ts': GLOBAL }, ['and', 'more'], 2],
  ])('has an exit code for %s', async (_name, files, args, code) => {
    expect((await migrate(project(files as Record<string, string>), ...args)).code).toBe(code);
  });

  it('answers machines', async () => {
    const { out } = await migrate(project({ 'src/app.ts': codeOf('before') }), '--json');
    expect(JSON.parse(out)).toMatchObject({
      changes: [{ file: 'package.json' }, { file: 'src/app.ts' }].reverse(),
      findings: [],
    });
  });
});
