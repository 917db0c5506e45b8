const ABOUT = 6;

/** Round figures from `least` to the first one that is not below `most`. */
export function linearTicks(least: number, most: number): number[] {
  const step = roundStep((most - least) / ABOUT);
  const first = Math.floor(least / step);
  const count = Math.ceil(most / step - 1e-9) - first;
  // Multiplied anew each time: adding up would show 0.30000000000000004.
  return Array.from({ length: count + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** 1, 2 and 5 of every power of ten in between. */
export function logTicks(least: number, most: number): number[] {
  const ticks: number[] = [];
  const last = Math.ceil(Math.log10(most));
  for (let power = Math.floor(Math.log10(least)); power <= last; power++) {
    for (const digit of [1, 2, 5]) {
      const tick = Number((digit * 10 ** power).toPrecision(12));
      if (tick >= least && tick <= most) ticks.push(tick);
    }
  }
  return ticks;
}

export function tickText(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 6 });
}

function roundStep(rough: number): number {
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = [1, 2, 5, 10].find((one) => one * power >= rough * (1 - 1e-9))!;
  return digit * power;
}
