import { setTimeout as pause } from 'node:timers/promises';
import { type Guide } from '../support/serve.js';
import { type Tour } from '../support/tour.js';
import { tableOf, type Figures } from './figures.js';
import { type SaleState } from './sale.js';

export const guide: Guide = { command: 'npm run sample:overload', welcome, tour };

function welcome(address: string): string {
  const turn = (switches: string): string =>
    `curl -s -o /dev/null -H 'content-type: application/json' -d '${switches}' ${address}/switches`;
  return `
Open ${address} in a browser (Ctrl-C ends it). A shop that can render 200 pages a second, and callers of
four tiers; everything is on that page. In a terminal the same is:

# Three times as many requests as the shop can serve, without the line: hardly anybody is served in time.
${turn('{"line":"off","load":"3"}')}; sleep 6; curl -s ${address}/table

# With the line: S and A are served, C is refused, and all of them know at once.
${turn('{"line":"on"}')}; sleep 9; curl -s ${address}/table; ${turn('{"load":"0"}')}
`;
}

/** The ramp, the patience of callers, and the seconds that figures are of. */
const SETTLE_MS = 4500;

const LONGEST_MS = 120_000;

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + LONGEST_MS;
  while (!(await isSo()) && performance.now() < endMs) await pause(100);
}

async function tour(address: string, tour: Tour): Promise<void> {
  const turn = async (switches: object): Promise<void> => {
    await fetch(`${address}/switches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(switches),
    });
  };
  const state = async (): Promise<SaleState> =>
    (await (await fetch(`${address}/state`)).json()) as SaleState;
  const see = async (switches: object): Promise<Figures> => {
    await turn(switches);
    // A shop without the line hears of it when the turn of its loop is over.
    await until(async () => {
      const { shop, isLineOn } = await state();
      return shop?.isLineOn === isLineOn;
    });
    // With it, callers who gave up have left connections that are still to be accepted.
    await pause(SETTLE_MS);
    await until(async () => {
      const { isLineOn, figures } = await state();
      return !isLineOn || figures.gaveUp === 0;
    });
    return (await state()).figures;
  };
  const percent = (part: number): string => `${Math.round(part * 100)} %`;

  tour.scene('Half of what the shop can serve');
  let half = await see({ line: 'on', load: '0.5' });
  // A machine that is busy with something else leaves the shop less than it can serve, for a while.
  await until(async () => {
    half = (await state()).figures;
    return half.refused < 0.2 && half.gaveUp === 0;
  });
  tour.see(
    'hardly anybody is refused, and everybody has an answer',
    `${percent(half.refused)} refused, ${percent(half.gaveUp)} without an answer`,
    half.refused < 0.2 && half.gaveUp === 0 && half.sent > 0,
  );

  tour.scene('Three times as much as it can serve, without the line');
  const without = await see({ line: 'off', load: '3' });
  tour.see(
    'all wait for all, and hardly anybody is served in time',
    `${percent(without.goodput)} of the capacity, ${percent(without.gaveUp)} without an answer`,
    without.goodput < 0.3,
  );

  tour.scene('The same with the line');
  const line = await see({ line: 'on' });
  await turn({ load: '0' });
  tour.see(
    'the shop is busy with answers that are in time',
    `${percent(line.goodput)} of the capacity`,
    line.goodput > without.goodput + 0.2,
  );
  const { S, C } = line.inTime;
  tour.see(
    'the highest tier is served, the lowest refused, and all are told at once',
    `S ${percent(S)}, C ${percent(C)} in time; ${percent(line.gaveUp)} without an answer`,
    S > C + 0.3 && line.gaveUp < 0.02,
  );
  tour.tell(`\n${tableOf({ without, 'with the line': line })}`);
}
