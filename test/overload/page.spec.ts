import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { effective } from '../../lib/config/document/effective.js';
import { checkDocument } from '../../lib/config/schema/check.js';
import { parseText } from '../../lib/config/sources/parse-text.js';
import { OverloadOptions } from '../../lib/overload/settings.js';
import { root } from '../setup/ensure-built.js';

const page = readFileSync(join(root, 'docs/overload.md'), 'utf8');
const tiers = readFileSync(join(root, 'docs/overload-tiers.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...tiers.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, code]) => code!,
  );

describe('the pages on overload', () => {
  it('has a configuration for normal days and promotions, with the figures of the source (E-42…E-48)', async () => {
    const [text] = blocks('yaml');
    const document = checkDocument(await parseText(text!, 'weir.yaml'));
    const tiersIn = (profile: string) => effective(document, profile).policies!['merchant']!.tiers;
    expect(tiersIn('normal')).toEqual({ S: 10_000, A: 5000, B: 1000, C: 100 });
    expect(tiersIn('promo')).toEqual({ S: 50_000, A: 20_000, B: 5000, C: 500 });
    expect(effective(document, 'promo').overload).toEqual({ enabled: true, target: '30ms' });
  });

  it('says the defaults as they are', () => {
    const { interval, target, tiers } = new OverloadOptions();
    expect([interval, target, tiers]).toEqual(['200ms', '50ms', ['S', 'A', 'B', 'C']]);
    expect(page).toContain('`interval` (200 ms)');
    expect(page).toContain('`target` (50 ms)');
  });
});
