import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { stopAll } from '../support/processes.js';
import { toJavaScript, typeErrors } from './markdown-code.js';

const page = readFileSync(join(root, 'docs/migrating-from-throttler.md'), 'utf8');

/** The code below a comment of the page. */
function codeOf(mark: string): string {
  const [, code] = new RegExp(`<!-- ${mark} -->\\s*\`\`\`ts\\n([\\s\\S]*?)^\`\`\``, 'm').exec(
    page,
  )!;
  return code!;
}

/** The same main.ts for both, which asks the app a few times and prints what it answers. */
const MAIN = `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();
for (const path of ['/cats', '/cats/custom', '/users/limited', '/users/free', '/cats']) {
  const statuses: Record<number, number> = {};
  let text = '';
  for (let i = 0; i < 12; i++) {
    const response = await fetch(url + path);
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    if (response.ok) text = await response.text();
  }
  console.log(path, JSON.stringify(statuses), text);
}
await app.close();
`;

const run = (code: string) =>
  runToEnd(process.execPath, ['--input-type=module', '-'], {
    cwd: root,
    input: toJavaScript(code + MAIN),
  });

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the page on moving over from @nestjs/throttler', () => {
  const [before, after] = [codeOf('before'), codeOf('after')];

  it('has code of the right types', () => {
    const files = new Map([
      ['migration-before.ts', before],
      ['migration-after.ts', after],
    ]);
    expect(typeErrors(files)).toEqual([]);
  });

  it('has two apps that answer alike', async () => {
    const [old, moved] = [await run(before), await run(after)];
    expect(old).toMatchObject({ code: 0, stderr: '' });
    expect(old.stdout.split('\n').slice(0, 4)).toEqual([
      '/cats {"200":10,"429":2} List cats works with the limit of the module.',
      '/cats/custom {"200":3,"429":9} List cats works with custom rate limiting.',
      '/users/limited {"200":10,"429":2} List users works with rate limiting.',
      '/users/free {"200":12} List users works without rate limiting.',
    ]);
    expect(moved).toEqual(old);
  });

  it('changes the module and the decorators, and nothing else', () => {
    const controllers = (code: string): string[] =>
      code
        .slice(code.indexOf('@Controller'), code.indexOf('@Module'))
        .split('\n')
        .filter((line) => !/^\s*@(Skip|Throttle|RateLimit)/.test(line));
    expect(controllers(after)).toEqual(controllers(before));
  });
});
