import { type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type CallWriter, type Flight } from './call-writer.js';
import { type NodeSurroundings } from './node-surroundings.js';
import { type RevisionWatch } from './revision-watch.js';

/** What a reply means for the calls that follow. */
export interface ReplyMeaning {
  /** Some app has less than was asked for. */
  readonly isScarce: boolean;
  /** The store goes by limits that this node has not heard of. */
  readonly isOvertaken: boolean;
}

/** Books the replies of the store into the tanks. */
export class ReplyIntake {
  private overloaded = false;

  constructor(
    private readonly node: NodeSurroundings,
    private readonly writer: CallWriter,
    private readonly revisions: RevisionWatch,
  ) {}

  book({ sentAt, asked }: Flight, reply: QuotaReply, now: number): ReplyMeaning {
    const { tanks, plan, events } = this.node;
    this.takeIn(reply);
    const isOvertaken = this.isOvertakenBy(reply.revision);
    for (const tank of tanks) tank.renew(sentAt + reply.leaseTtlMicros, now);
    let isScarce = this.leaveOut(reply, asked);
    for (const app of reply.apps) {
      const tank = tanks[app.app]!;
      const hadShare = tank.isOverloaded ? tank.share : -1;
      tank.settle(app, asked.get(app.app) ?? [], reply.nowMicros, now);
      tank.isOverloaded = reply.overloaded;
      if ((tank.isOverloaded ? tank.share : -1) !== hadShare) events.adjust?.(tank);
    }
    plan.capAt(reply.leaseCap);
    for (const app of reply.apps) {
      const tank = tanks[app.app]!;
      tank.refillAt = plan.refillLevel(tank, now);
      tank.reportAt = plan.reportLevel(tank, now);
      tank.isStuck = tank.tokens <= tank.refillAt;
      if (tank.lastShortage !== 'none') isScarce = true;
    }
    return { isScarce, isOvertaken };
  }

  /** What a reply says about the cluster, before what it says about the apps. */
  private takeIn(reply: QuotaReply): void {
    const { tanks, events } = this.node;
    const hadEpoch = this.writer.epoch;
    if (!this.writer.hear(reply)) for (const tank of tanks) tank.forget(hadEpoch !== 0);
    if (hadEpoch !== 0 && reply.epoch !== hadEpoch) events.epoch?.(reply.epoch);
    if (reply.overloaded === this.overloaded) return;
    this.overloaded = reply.overloaded;
    events.overload?.(reply.overloaded);
  }

  /** True if there are apps that the store has no limits for; it is not asked for them all the time. */
  private leaveOut(reply: QuotaReply, asked: Flight['asked']): boolean {
    if (reply.apps.length === asked.size) return false;
    for (const [index, waiters] of asked) {
      if (reply.apps.some(({ app }) => app === index)) continue;
      this.node.tanks[index]!.goUnlisted(waiters);
    }
    return true;
  }

  /** Raised figures wait until the store has them. True if it has later ones than this node. */
  private isOvertakenBy(revision: number): boolean {
    const { tanks, clock } = this.node;
    const news = this.revisions.hear(revision);
    if (news === 'confirmed') {
      for (const tank of tanks) if (!tank.isRetired) tank.confirm(clock.now());
    }
    return news === 'overtaken';
  }
}
