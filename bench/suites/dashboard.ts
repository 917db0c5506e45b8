import { atMost, below } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { firstPictureMs, longestFrameMs } from '../support/dashboard/page.js';
import { WatchedProcess, type Minute } from '../support/dashboard/watched-process.js';
import { median, medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

const DECISION = 'a decision while 100 look';
const MOST_TIMES_UNSEEN = 1.05;
/** Twins that are 5 % apart cannot decide a bar of 5 %. */
const MOST_APART = 0.025;
const ROUNDS_OF_LIFE = 3;
/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const LIMIT = { keys: 1, limit: 1_000_000, periodMs: 10 };
/** Decisions per turn of the loop; a measurement lasts more than a second, so that it has a frame in it. */
const TURNS = { inFlight: 2000, targetMs: 1200 };
const UNSEEN = 'without monitor and page';
const VIEWED = '100 viewers';
const CONTESTANTS: Contestants = [
  [UNSEEN, 'weir-unseen'],
  [`${UNSEEN} again`, 'weir-unseen'],
  [VIEWED, 'weir-viewed'],
  [`${VIEWED} again`, 'weir-viewed'],
];

const SECOND = 'a second of a process: its tick and its frame';
const CPU_MS = 'CPU ms';
const MINUTES = 10;
const MOST_FRAME_MS = 1;
const MOST_GROWN_MB = 1;

const PAGE = 'the page, in Chromium';
const ATTEMPTS = 5;
const MOST_FIRST_PICTURE_MS = 1000;
const MOST_FRAME_IN_PAGE_MS = 50;

export const dashboard: Suite = {
  name: 'dashboard',
  about: 'what viewers cost the process that they look at, and the page its browser',

  async run(context) {
    const parts = [await decisions(context), await frames(context), await page(context)];
    return {
      series: parts.flatMap(({ series }) => series),
      bars: parts.flatMap(({ bars }) => bars),
      notes: [
        'Decisions are made 2,000 a turn, so that ticks and frames fall between them and are counted; viewers are another process.',
      ],
    };
  },
};

interface Part {
  readonly series: readonly Series[];
  readonly bars: readonly Bar[];
}

async function decisions(context: SuiteContext): Promise<Part> {
  const series = await measureCalls(
    DECISION,
    CONTESTANTS,
    LIMIT,
    UNSEEN,
    context,
    'allowed',
    TURNS,
    { mostApart: MOST_APART, roundsOfLife: ROUNDS_OF_LIFE },
  );
  const ratio = medianRatio(cpuOf(VIEWED, DECISION, series), cpuOf(UNSEEN, DECISION, series));
  const promise = `a decision while 100 look ≤ ${MOST_TIMES_UNSEEN} × one without monitor and page, ${CPU}`;
  return {
    series,
    bars: [atMost(promise, ratio, MOST_TIMES_UNSEEN, apartIn(series, DECISION, CPU), MOST_APART)],
  };
}

/**
 * Minutes with one viewer and with a hundred take turns, so that both see the same machine: of each pair the difference of
 * the medians counts, and of those their median.
 */
async function frames({ progress }: SuiteContext): Promise<Part> {
  const one = await WatchedProcess.start(1);
  const hundred = await WatchedProcess.start(100);
  try {
    const few: Minute[] = [];
    const many: Minute[] = [];
    for (let minute = 0; minute < MINUTES; minute++) {
      progress(SECOND, `minute ${minute + 1} of ${MINUTES}`);
      few.push(await one.minute());
      many.push(await hundred.minute());
    }
    const { frameBytes, tickBytes, grownBytes } = await hundred.held();
    const of = (contender: string, values: readonly number[]): Series => {
      return { case: SECOND, contender, metric: CPU_MS, values };
    };
    const more = many.map(({ framesMs }, minute) => {
      return median(framesMs) - median(few[minute]!.framesMs);
    });
    const [kilobytes, sent] = [frameBytes, tickBytes].map((bytes) => (bytes / 1000).toFixed(1));
    const frame = `a frame of ${kilobytes} kB, of which ${sent} have changed, to 99 further viewers ≤ ${MOST_FRAME_MS} ms, ${CPU_MS}`;
    const growth = `memory of ten minutes at 10,000/s with 100 viewers, one of which reads nothing, grows < ${MOST_GROWN_MB} MB`;
    return {
      series: [
        of(
          '1 viewer',
          few.flatMap(({ secondsMs }) => secondsMs),
        ),
        of(
          '100 viewers',
          many.flatMap(({ secondsMs }) => secondsMs),
        ),
        of('of that, the frame to 99 of them', more),
        of(
          'as many bytes to 99 bare sockets',
          many.flatMap(({ bareMs }) => bareMs),
        ),
      ],
      bars: [
        atMost(frame, median(more), MOST_FRAME_MS),
        below(growth, grownBytes / 1e6, MOST_GROWN_MB),
      ],
    };
  } finally {
    one.stop();
    hundred.stop();
  }
}

async function page({ progress }: SuiteContext): Promise<Part> {
  progress(PAGE, 'first picture');
  const pictures = await firstPictureMs(ATTEMPTS);
  progress(PAGE, '5,000 policies');
  const longest = await longestFrameMs(ATTEMPTS);
  const of = (metric: string, values: readonly number[]): Series => {
    return { case: PAGE, contender: 'the page', metric, values };
  };
  return {
    series: [of('first picture, ms', pictures), of('a frame of 5,000 policies, ms', longest)],
    bars: [
      atMost(
        `first picture ≤ ${MOST_FIRST_PICTURE_MS} ms, best of ${ATTEMPTS}`,
        Math.min(...pictures),
        MOST_FIRST_PICTURE_MS,
      ),
      atMost(
        `a frame of 5,000 policies keeps the page busy for ≤ ${MOST_FRAME_IN_PAGE_MS} ms, best of ${ATTEMPTS}`,
        Math.min(...longest),
        MOST_FRAME_IN_PAGE_MS,
      ),
    ],
  };
}
