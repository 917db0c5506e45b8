import { type Contender } from '../contenders/contender.js';
import { contenders } from '../contenders/index.js';
import { drive, sink } from './drive.js';
import { type SpeedJob, type SpeedMeasurement } from './protocol.js';
import { Traffic } from './traffic.js';

/** Times the target length: long enough for the compiler to have settled on its last version. */
const WARM_UPS = 4;

/**
 * Visits to each key before the clock starts. The second one counts too: a field that held whole
 * numbers so far gets its first fraction, and V8 then moves each such object to another layout. With
 * a million keys that went on for seconds and was most of the floor's figure.
 */
const VISITS_BEFOREHAND = 2;

export async function startSpeed(job: SpeedJob): Promise<() => Promise<SpeedMeasurement>> {
  const create = await contenders[job.contender]();
  const contender: Contender = await create(job.options);
  const traffic = Traffic.of(job.options.keys);
  const run = (decisions: number): Promise<SpeedMeasurement> =>
    timed(contender, traffic, decisions, job.inFlight);

  await run(VISITS_BEFOREHAND * traffic.keys.length);
  if (job.expect === 'denied') await run(traffic.keys.length * job.options.limit);

  let decisions = await calibrate(run, job.targetMs);
  for (let n = 0; n < WARM_UPS; n++) await run(decisions);
  // Calibrated once more: a part of the code had not been compiled the first time.
  decisions = await calibrate(run, job.targetMs);

  return async () => {
    globalThis.gc?.();
    const measurement = await run(decisions);
    assertExpected(job, contender.allowed(sink.last));
    return measurement;
  };
}

async function timed(
  contender: Contender,
  traffic: Traffic,
  asked: number,
  inFlight: number,
): Promise<SpeedMeasurement> {
  const cpuBefore = process.cpuUsage();
  const before = process.hrtime.bigint();
  const decisions = await drive(contender, traffic, asked, inFlight);
  const wallNs = Number(process.hrtime.bigint() - before);
  const cpu = process.cpuUsage(cpuBefore);
  return { decisions, wallNs, cpuNs: (cpu.user + cpu.system) * 1000 };
}

/** The number of decisions that take about `targetMs`. */
async function calibrate(
  run: (decisions: number) => Promise<SpeedMeasurement>,
  targetMs: number,
): Promise<number> {
  const targetNs = targetMs * 1e6;
  let decisions = 1024;
  for (;;) {
    const { wallNs } = await run(decisions);
    if (wallNs >= targetNs / 4) return Math.ceil((decisions * targetNs) / wallNs);
    decisions *= 2;
  }
}

/** A case of allowed traffic that was in fact denied would compare two different things. */
function assertExpected(job: SpeedJob, allowed: boolean): void {
  const found = allowed ? 'allowed' : 'denied';
  if (found !== job.expect) {
    throw new Error(`traffic that was to be ${job.expect} was ${found} at the end`);
  }
}
