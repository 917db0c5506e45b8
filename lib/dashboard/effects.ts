import { figure, percent } from '../observability/figures.js';
import { type AppImpact, type Impact } from '../observability/impact.js';

/** The effect that a change would have had in the last hours, in one sentence. */
export interface Effect {
  readonly isWarning: boolean;
  readonly text: string;
}

const LEAST_DENIED = 0.5;

/** App by app, and policy by policy. */
export function effectsOf({ minutes, apps, policies }: Impact): Effect[] {
  const affected = apps
    .filter(({ deniedBefore, deniedAfter }) => Math.abs(deniedAfter - deniedBefore) >= LEAST_DENIED)
    .map((one) => ({
      isWarning: one.deniedAfter > one.deniedBefore,
      text: appText(one, minutes),
    }));
  const altered = policies.map(({ policy, change, rate, denied }) => ({
    isWarning: change === 'removed',
    text: `${policy} is ${change}: ${figure(rate)}/s asked, ${percent(denied)} denied so far. Keys are not kept, so who would be denied is not known.`,
  }));
  if (affected.length > 0) return [...affected, ...altered];
  const text =
    minutes === 0
      ? 'No minute is known yet to replay.'
      : `The last ${minutesText(minutes)} replayed: no app would have been denied more or less.`;
  return [{ isWarning: false, text }, ...altered];
}

function appText(
  { app, demand, deniedBefore, deniedAfter, minutesAfter }: AppImpact,
  minutes: number,
): string {
  const part = (denied: number): string => percent(demand > 0 ? denied / demand : 0);
  return `${app}: ${part(deniedBefore)} denied → ${part(deniedAfter)}, in ${minutesText(minutesAfter)} of ${minutes}`;
}

const minutesText = (number: number): string =>
  `${figure(number)} ${number === 1 ? 'minute' : 'minutes'}`;
