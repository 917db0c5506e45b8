import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Page } from 'playwright-core';
import { type Changes, withChanges } from '../../lib/dashboard/changes.js';
import { type PageFrame } from '../../lib/dashboard/frame.js';
import { closeAtEnd } from '../support/processes.js';
import { until } from '../support/until.js';

/** Less than what the shortest of the buttons lasts. */
const PRESS_AGAIN_MS = 10_000;

/** A visitor of the page, who presses its buttons and sees what becomes of it. */
export class Visitor {
  /** All that the page was sent, from the first second on: none is missed while this process has no time. */
  readonly frames: PageFrame[] = [];

  private constructor(
    private readonly page: Page,
    private readonly address: string,
  ) {}

  static at(page: Page, address: string): Visitor {
    const visitor = new Visitor(page, address);
    void visitor.watch();
    return visitor;
  }

  /** Resolves to what the bar says. */
  async press(name: string, answer?: RegExp): Promise<string> {
    const bar = this.page.locator('.action-bar');
    await bar.getByRole('button', { name, exact: true }).click();
    return answer === undefined ? '' : ((await bar.getByText(answer).textContent()) ?? '');
  }

  async pressUntil<T>(name: string, seen: Promise<T>): Promise<T> {
    await this.press(name);
    return this.pressAgainUntil(name, seen);
  }

  /** What a button does ends after some seconds: it is pressed again as long as a busy machine has not shown all of it. */
  async pressAgainUntil<T>(name: string, seen: Promise<T>): Promise<T> {
    const isSeen = seen.then(() => true);
    while (!(await Promise.race([isSeen, pause(PRESS_AGAIN_MS, false)]))) await this.press(name);
    return seen;
  }

  async sees(place: string, text: RegExp): Promise<void> {
    const found = this.page.locator(place).filter({ hasText: text }).first();
    await found.waitFor();
  }

  /** The first frame from now on for which it holds. */
  async told(what: string, holds: (frame: PageFrame) => boolean): Promise<PageFrame> {
    const [frame] = await this.allTold(what, 1, holds);
    return frame!;
  }

  /** The first so many. */
  allTold(
    what: string,
    count: number,
    holds: (frame: PageFrame) => boolean,
  ): Promise<readonly PageFrame[]> {
    const from = this.frames.length;
    return until(
      () => {
        const found = this.frames.slice(from).filter(holds);
        return found.length >= count ? found.slice(0, count) : undefined;
      },
      { what, timeoutMs: 120_000, intervalMs: 50 },
    );
  }

  ask<T>(path: string): Promise<T> {
    return askAt<T>(this.address, path);
  }

  /** The first frame of another node's page for which it holds. */
  toldBy(node: string, what: string, holds: (frame: PageFrame) => boolean): Promise<PageFrame> {
    return until(
      async () => {
        const frame = await askAt<PageFrame>(node, 'state');
        return holds(frame) ? frame : undefined;
      },
      { what, timeoutMs: 120_000, intervalMs: 250 },
    );
  }

  private async watch(): Promise<void> {
    const { body } = await fetch(`${this.address}/weir/api/stream`);
    let latest: unknown;
    let rest = '';
    try {
      for await (const part of body!.pipeThrough(new TextDecoderStream())) {
        const events = (rest + part).split('\n\n');
        rest = events.pop()!;
        for (const event of events) {
          const [, name, data] = /^event: (\w+)\ndata: (.*)$/m.exec(event) ?? [];
          if (data === undefined) continue;
          const told: unknown = JSON.parse(data);
          latest = name === 'state' ? told : withChanges(latest, told as Changes);
          this.frames.push(latest as PageFrame);
        }
      }
    } catch {
      // The sample has ended, and the stream with it.
    }
  }
}

const askAt = async <T>(address: string, path: string): Promise<T> =>
  (await (await fetch(`${address}/weir/api/${path}`)).json()) as T;

/** An answer, and between which instants of this process it was decided. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** Callers of our own, from outside; they count what the page does not. */
export class Callers {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly timers: NodeJS.Timeout[] = [];

  constructor() {
    closeAtEnd(() => Promise.resolve(this.end()));
  }

  ask(url: string, method = 'GET'): Promise<Answer> {
    const askedMs = performance.now();
    return new Promise((resolve, reject) => {
      const asked = request(
        url,
        { agent: this.agent, method, headers: { 'x-client': 'visitor' } },
        (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (text: string) => (body += text));
          response.once('error', reject).once('end', () => {
            resolve({ status: response.statusCode!, body, askedMs, answeredMs: performance.now() });
          });
        },
      );
      asked.once('error', reject).end();
    });
  }

  /** Asks each in turn, so often a second, until the end; resolves to all answers. */
  keepAsking(urls: readonly string[], perSecond: number): () => Promise<readonly Answer[]> {
    const answers: Promise<Answer>[] = [];
    let turn = 0;
    const startedMs = performance.now();
    const timer = setInterval(() => {
      const due = ((performance.now() - startedMs) * perSecond) / 1000;
      for (; turn < due; turn++) {
        const answer = this.ask(urls[turn % urls.length]!);
        // That one fails is told to those who wait for all.
        answer.catch(() => undefined);
        answers.push(answer);
      }
    }, 20);
    this.timers.push(timer);
    return () => {
      clearInterval(timer);
      return Promise.all(answers);
    };
  }

  private end(): void {
    for (const timer of this.timers) clearInterval(timer);
    this.agent.destroy();
  }
}

/**
 * How far the answers went beyond what so many a second allow, with one second's worth at once: above 0 in no stretch of
 * time, where the limit holds. An answer counts in a stretch only if it was decided in it for sure.
 */
export function worstExcess(answers: readonly Answer[], perSecond: number): number {
  const inOrder = [...answers].sort((one, other) => one.answeredMs - other.answeredMs);
  let worst = -Infinity;
  for (const { askedMs: fromMs } of answers) {
    let decided = 0;
    for (const { askedMs, answeredMs } of inOrder) {
      if (askedMs < fromMs) continue;
      decided++;
      const most = perSecond * ((answeredMs - fromMs) / 1000 + 1);
      worst = Math.max(worst, decided - most);
    }
  }
  return worst;
}
