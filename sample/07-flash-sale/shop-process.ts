import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type OverloadStats } from 'nestjs-weir';

/** Processor time of one answer. */
export const RENDER_MS = 5;
/** Answers a second that one core can give. */
export const CAPACITY = 1000 / RENDER_MS;

/** A change of the shop's configuration. */
export type ShopOrder =
  | { readonly overload: { readonly enabled: boolean } }
  | { readonly profile: string };

export interface ShopReport extends Pick<
  OverloadStats,
  'standing' | 'waiting' | 'turnMs' | 'byTier'
> {
  readonly isLineOn: boolean;
  readonly profile: string;
  /** Requests a second of one merchant, by tier. */
  readonly limits: Readonly<Record<string, unknown>>;
  /** The products that most is asked for of. */
  readonly hot: readonly { readonly key: string; readonly perPeriod: number }[];
}

const SHOP = fileURLToPath(new URL('./shop.js', import.meta.url));

/** The shop, as seen from the process of the page. */
export class ShopProcess {
  report: ShopReport | undefined;
  private heardAt = performance.now();

  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {
    child.on('message', (report) => {
      this.report = report as ShopReport;
      this.heardAt = performance.now();
    });
  }

  static async start(): Promise<ShopProcess> {
    const child = fork(SHOP);
    const url = await new Promise<string>((resolve, reject) => {
      child.once('message', (address) => resolve(address as string));
      child.once('exit', (code) => reject(new Error(`the shop ended with ${code}`)));
    });
    return new ShopProcess(child, url);
  }

  get heardMsAgo(): number {
    return performance.now() - this.heardAt;
  }

  order(order: ShopOrder): void {
    this.child.send(order);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    // With thousands of callers in its queue it would take its time.
    this.child.kill('SIGKILL');
    await ended;
  }
}
