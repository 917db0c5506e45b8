import { type Contender } from '../contenders/contender.js';
import { contenders } from '../contenders/index.js';
import { sink } from './drive.js';
import { type FootprintJob, type FootprintMeasurement } from './protocol.js';
import { settledBytes } from './settled-bytes.js';
import { keyOf } from './traffic.js';

/** Decisions of a throwaway instance, so that compiled code and its notes are not taken for keys. */
const REHEARSAL_KEYS = 20_000;

export async function startFootprint(
  job: FootprintJob,
): Promise<() => Promise<FootprintMeasurement>> {
  const create = await contenders[job.contender]();
  const rehearsal = await create(job.options);
  await insert(rehearsal, REHEARSAL_KEYS);
  await rehearsal.close();

  return async () => {
    const before = settledBytes();
    // Created only now: what a limiter sets aside for its keys beforehand is theirs too.
    const contender = await create(job.options);
    await insert(contender, job.options.keys);
    const bytesPerKey = (settledBytes() - before) / job.options.keys;
    await contender.close();
    return { bytesPerKey };
  };
}

/** Each key is made here and held by nobody but the contender. */
async function insert(contender: Contender, keys: number): Promise<void> {
  for (let n = 0; n < keys; n++) {
    const answer = contender.decide(keyOf(n));
    sink.last = answer instanceof Promise ? await answer : answer;
  }
  sink.last = undefined;
}
