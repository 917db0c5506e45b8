import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FAMILIES, type FamilyInfo } from '../../lib/observability/families.js';
import { root } from '../setup/ensure-built.js';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly w: number };
}

interface Dashboard {
  readonly panels: readonly Panel[];
}

describe('ops/grafana-dashboard.json', () => {
  const made = async (families: readonly FamilyInfo[]): Promise<Dashboard> => {
    const script = join(root, 'scripts/support/grafana.mjs');
    const { dashboardOf } = (await import(script)) as {
      dashboardOf: (families: readonly FamilyInfo[]) => Dashboard;
    };
    return dashboardOf(families);
  };

  it('is what `npm run ops-files` makes of the metrics', async () => {
    const text = readFileSync(join(root, 'ops/grafana-dashboard.json'), 'utf8');
    expect(JSON.parse(text)).toEqual(await made(FAMILIES));
  });

  it('has rows from the whole to the parts, and each panel on the grid', async () => {
    const { panels } = await made(FAMILIES);
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    const expected = [
      'Overview',
      'Quota',
      'Policies',
      'Store',
      'Degradation',
      'Resources',
      'Fleet',
    ];
    expect(rows).toEqual(expected);
    expect(panels.filter(({ type }) => type !== 'row')).toHaveLength(16);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });

  it('cannot be made of metrics or labels that there are not', async () => {
    const lacking = FAMILIES.filter(({ name }) => name !== 'weir_store_up');
    await expect(made(lacking)).rejects.toThrow('weir_store_up, which is no metric');
    const renamed = FAMILIES.map((one) => ({ ...one, labels: [] }));
    await expect(made(renamed)).rejects.toThrow('for the label');
  });
});
