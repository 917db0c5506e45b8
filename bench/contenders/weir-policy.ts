import { type PolicyInput } from 'nestjs-weir';
import { type ContenderOptions } from './contender.js';

/** The case's limit as a policy. A window admits its rate and knows no burst. */
export function weirPolicy({ algorithm, limit, periodMs }: ContenderOptions): PolicyInput {
  const figures = { rate: limit, period: periodMs };
  return algorithm === 'sliding-window'
    ? { ...figures, algorithm }
    : { ...figures, algorithm, burst: limit };
}
