const MOST_MORE = 6;
// Formats are made once, by their digits: making one takes longer than a hundred numbers do.
const FORMATS = Array.from(
  { length: MOST_MORE + 3 },
  (_, digits) => new Intl.NumberFormat('en', { maximumFractionDigits: digits }),
);

/** `48.6k`, `2,316`, `1.5`: as short as a reader in a hurry needs it; with more digits where two are compared. */
export function figure(value: number, more = 0): string {
  if (value >= 999_500) return `${short(value / 1_000_000, 100, more)}M`;
  if (value >= 9999.5) return `${short(value / 1000, 100, more)}k`;
  return short(value, 10, more);
}

const short = (value: number, wholeFrom: number, more: number): string =>
  FORMATS[more + (value < wholeFrom ? 1 : 0)]!.format(value);

/** `0.02 %`, `0.2 %`, `5.6 %`, `104 %`. */
export function percent(part: number, more = 0): string {
  const value = part * 100;
  if (more === 0 && value > 0 && value < 0.005) return '< 0.01 %';
  return `${value < 1 ? FORMATS[more + 2]!.format(value) : short(value, 10, more)} %`;
}

/** Two figures that stand beside each other, with as many digits as it takes to tell them apart. */
export function apart(
  tell: (value: number, more: number) => string,
  one: number,
  other: number,
): readonly [string, string] {
  let more = 0;
  while (more < MOST_MORE && one !== other && tell(one, more) === tell(other, more)) more++;
  return [tell(one, more), tell(other, more)];
}

const WINDOWS: Readonly<Record<number, string>> = {
  1000: 's',
  60_000: 'min',
  3_600_000: 'h',
  86_400_000: 'day',
};

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
];

/** `5/min`, `50/s`, `20 in 10 s`. */
export function limitText(capacity: number, windowMs: number): string {
  const name = WINDOWS[Math.round(windowMs)];
  if (name !== undefined) return `${figure(capacity)}/${name}`;
  if (windowMs < 1000) return `${figure((capacity * 1000) / windowMs)}/s`;
  return `${figure(capacity)} in ${spanText(windowMs)}`;
}

/** `in the last minute`, `in the last 10 s`. */
export const lastText = (windowMs: number): string =>
  `in the last ${ONE[windowMs] ?? spanText(windowMs)}`;

const ONE: Readonly<Record<number, string>> = {
  60_000: 'minute',
  3_600_000: 'hour',
  86_400_000: 'day',
};

/** A span that is no whole number of a unit is told in the next smaller one. */
function spanText(spanMs: number): string {
  const [size, unit] = UNITS.find(([ms]) => spanMs % ms === 0) ?? [1000, 's'];
  return `${figure(spanMs / size)} ${unit}`;
}
