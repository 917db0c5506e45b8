import { ServerResponse } from 'node:http';
import { type Writable } from 'node:stream';
import { type Cancel, type Clock } from '../common/clock.js';
import { begin, RequestProblem } from './answers.js';

/** A viewer that reads nothing for so long is cut. */
const CUT_MICROS = 10_000_000;
/** Then the browser comes again, and the guards are asked again. */
const LONGEST_MICROS = 300_000_000;

/** A frame as it is sent. */
export interface FrameEvents {
  /** One more than that of the frame before. */
  readonly sequence: number;
  /** All of it. */
  state(): Buffer;
  /** The changes since the frame before. */
  tick(): Buffer;
}

interface Viewer {
  readonly response: ServerResponse;
  /** Where frames are written. */
  readonly sink: Pick<Writable, 'write'>;
  readonly sinceMicros: number;
  /** Of the last frame that it was sent: of the one after that, it needs the changes only. */
  sequence: number | undefined;
  /** The kernel's buffers and ours are full since then: frames are skipped, and none is kept. */
  fullSinceMicros: number | undefined;
}

export interface ViewersDeps {
  readonly clock: Pick<Clock, 'now'>;
  readonly most: number;
  /** Calls back each second; the result ends that. Only as long as somebody looks. */
  readonly eachSecond: (task: () => void) => Cancel;
  /** The frame of this second, the same for all. */
  readonly frame: () => Promise<FrameEvents>;
  /** A frame could not be made: viewers stay, and get the next one. */
  readonly failed: (error: unknown) => void;
}

/**
 * The browsers that are kept up to date by server-sent events. A frame is made once and written to all; one that does
 * not read is passed over, so that it costs nobody anything, and cut in the end. Nest's own `@Sse` would queue for it.
 */
export class Viewers {
  private readonly viewers = new Set<Viewer>();
  private stop: Cancel | undefined;
  private isBusy = false;
  private isClosed = false;
  /** Since the start: frames that somebody did not get, and viewers that were cut or turned away. */
  skipped = 0;
  cut = 0;
  refused = 0;

  constructor(private readonly deps: ViewersDeps) {}

  get count(): number {
    return this.viewers.size;
  }

  /** Begins a stream; throws a RequestProblem if there are as many as may be. */
  async add(response: ServerResponse): Promise<void> {
    if (this.isClosed || this.viewers.size >= this.deps.most) {
      this.refused++;
      throw new RequestProblem(
        503,
        `${this.viewers.size} viewers are here already; try again later.`,
      );
    }
    const viewer = this.enter(response);
    begin(response, 200, {
      'content-type': 'text/event-stream; charset=utf-8',
      // Compression would hold frames back until there are enough of them.
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      // A connection that is kept would hold up an application that closes: on Fastify for 72 s.
      ...(isOfHttp1(response) && { connection: 'close' }),
    });
    // The stream ends with its connection: there are no chunks to make of each frame.
    response.removeHeader('transfer-encoding');
    // Headers leave with the first byte.
    response.write(': weir\n\n');
    this.stop ??= this.deps.eachSecond(() => void this.tick());
    await this.send([viewer]);
  }

  /** Ends all streams: an application that closes waits for them. */
  close(): void {
    this.isClosed = true;
    for (const { response } of this.viewers) response.end();
    for (const viewer of this.viewers) this.leave(viewer);
  }

  /** The frame of a second, to all who read. */
  async tick(): Promise<void> {
    for (const viewer of this.viewers) this.endIfDue(viewer);
    if (this.isBusy || this.viewers.size === 0) return;
    this.isBusy = true;
    await this.send(this.viewers);
    this.isBusy = false;
  }

  /** Without a frame they stay as they are: the next one may be well. */
  private async send(viewers: Iterable<Viewer>): Promise<void> {
    try {
      const frame = await this.deps.frame();
      for (const viewer of viewers) if (this.viewers.has(viewer)) this.write(viewer, frame);
    } catch (error) {
      this.deps.failed(error);
    }
  }

  private enter(response: ServerResponse): Viewer {
    const sink = sinkOf(response);
    const viewer: Viewer = {
      ...{ response, sink },
      sinceMicros: this.deps.clock.now(),
      sequence: undefined,
      fullSinceMicros: undefined,
    };
    this.viewers.add(viewer);
    sink.on('drain', () => (viewer.fullSinceMicros = undefined));
    for (const event of ['close', 'error']) response.on(event, () => this.leave(viewer));
    return viewer;
  }

  private leave(viewer: Viewer): void {
    if (!this.viewers.delete(viewer) || this.viewers.size > 0) return;
    this.stop?.();
    this.stop = undefined;
  }

  /** Whether there is a frame or not. */
  private endIfDue(viewer: Viewer): void {
    const { response, sinceMicros, fullSinceMicros } = viewer;
    const now = this.deps.clock.now();
    if (fullSinceMicros !== undefined && now - fullSinceMicros >= CUT_MICROS) {
      this.cut++;
      this.leave(viewer);
      response.destroy();
    } else if (now - sinceMicros >= LONGEST_MICROS) {
      this.leave(viewer);
      response.end();
    }
  }

  private write(viewer: Viewer, frame: FrameEvents): void {
    if (viewer.fullSinceMicros !== undefined) {
      this.skipped++;
      return;
    }
    // It has this one if it came a moment ago.
    if (viewer.sequence === frame.sequence) return;
    const isNext = viewer.sequence === frame.sequence - 1;
    const event = isNext ? frame.tick() : frame.state();
    viewer.sequence = frame.sequence;
    if (!viewer.sink.write(event)) viewer.fullSinceMicros = this.deps.clock.now();
  }
}

/**
 * The connection itself: a response holds every write back until the next turn, which is a third of what a viewer costs.
 * HTTP/2 has no connection of its own, and a response whose `write` somebody has replaced wants to see what is written.
 */
function sinkOf(response: ServerResponse): ServerResponse | Writable {
  const isPlain = isOfHttp1(response) && response.write === ServerResponse.prototype.write;
  return (isPlain && response.socket) || response;
}

const isOfHttp1 = (response: ServerResponse): boolean => response instanceof ServerResponse;
