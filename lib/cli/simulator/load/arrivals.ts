import { START_MICROS, type VirtualTime } from '../engine/virtual-time.js';
import { type Load } from './load.js';

/** Rates are looked at this often; arrivals have no memory, so that drawing anew changes nothing. */
const LOOK_MICROS = 10_000;

/** Lets requests arrive at random (Poisson), at rates that may change with time. */
export function arrive(
  time: VirtualTime,
  load: Load,
  untilSecond: number,
  random: () => number,
  request: (slot: number, app: number) => void,
): void {
  const until = START_MICROS + untilSecond * 1e6;
  const step = (): void => {
    const rates = load.rates(time.seconds());
    const total = rates.reduce((sum, rate) => sum + rate, 0);
    const gap = total > 0 ? (-Math.log(1 - random()) / total) * 1e6 : Infinity;
    const isRequest = gap <= LOOK_MICROS;
    const at = time.now() + (isRequest ? gap : LOOK_MICROS);
    if (at >= until) return;
    time.at(at, () => {
      if (isRequest) {
        const app = pick(rates, random() * total);
        request(load.slot(time.seconds(), random()), app);
      }
      step();
    });
  };
  step();
}

function pick(rates: readonly number[], draw: number): number {
  let sum = 0;
  for (const [app, rate] of rates.entries()) if (draw < (sum += rate)) return app;
  return rates.length - 1;
}
