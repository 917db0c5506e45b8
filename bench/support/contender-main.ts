import { startFootprint } from './footprint-job.js';
import { type Job, type Reply, type Request } from './protocol.js';
import { startSpeed } from './speed-job.js';

/** A job that is set up: each call takes one measurement. */
type Measure = () => Promise<Extract<Reply, { reply: 'done' }>['measurement']>;

/** The other side of `ContenderProcess`: sets its job up, then measures whenever it is asked to. */
export function runContenderProcess(): void {
  let measure: Measure | undefined;

  const answer = async (request: Request): Promise<Reply> => {
    if (request.ask === 'prepare') {
      measure = await start(request.job);
      return { reply: 'done' };
    }
    return { reply: 'done', measurement: await measure?.() };
  };

  process.on('message', (message) => {
    void answer(message as Request)
      .catch((error: unknown): Reply => ({ reply: 'failed', reason: reasonOf(error) }))
      .then((reply) => process.send?.(reply));
  });
  // The suites were interrupted: nobody is left to measure for.
  process.on('disconnect', () => process.exit(0));
}

function start(job: Job): Promise<Measure> {
  switch (job.kind) {
    case 'speed':
      return startSpeed(job);
    case 'footprint':
      return startFootprint(job);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
