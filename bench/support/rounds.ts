import { MOST_TIMES_ROUNDS } from './twins.js';

/**
 * Measures every contender once per round, each round beginning with the next one.
 *
 * A noisy machine drifts over seconds. Contenders of one round see about the same machine, so their
 * ratio is steady where their figures are not; and with the order rotated nobody always comes first
 * or always follows the one that heats the caches.
 *
 * `isSteady` is asked after the rounds, and after each further one up to MOST_TIMES_ROUNDS as many.
 */
export async function inRounds<Contender, Measurement>(
  contenders: readonly Contender[],
  rounds: number,
  measure: (contender: Contender, round: number) => Promise<Measurement>,
  isSteady: (taken: ReadonlyMap<Contender, readonly Measurement[]>) => boolean = () => true,
): Promise<Map<Contender, Measurement[]>> {
  const taken = new Map(contenders.map((contender) => [contender, [] as Measurement[]]));
  const isDone = (round: number): boolean =>
    round >= rounds && (isSteady(taken) || round >= MOST_TIMES_ROUNDS * rounds);
  for (let round = 0; !isDone(round); round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const contender = contenders[(round + turn) % contenders.length]!;
      taken.get(contender)!.push(await measure(contender, round));
    }
  }
  return taken;
}
