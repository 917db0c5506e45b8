import { type AppTokens } from './app-tokens.js';
import { type NodeSurroundings } from './node-surroundings.js';
import { type StoreContact } from './store-contact.js';

/** How an app's requests are decided on this node just now. */
export type NodeMode = 'batch' | 'paced' | 'direct' | 'offline';

/** The mode of each app, told when it becomes another one. */
export class ModeWatch {
  /** By the place of the tank. */
  private readonly told: NodeMode[] = [];

  constructor(
    private readonly node: NodeSurroundings,
    private readonly contact: StoreContact,
  ) {}

  modeOf(tank: AppTokens): NodeMode {
    const { plan, clock } = this.node;
    if (this.contact.isOffline) return 'offline';
    if (tank.lastShortage !== 'none') return 'paced';
    return plan.target(tank, clock.now()) === 0 ? 'direct' : 'batch';
  }

  tell(): void {
    const { tanks, events } = this.node;
    for (const tank of tanks) {
      if (tank.isRetired) continue;
      const mode = this.modeOf(tank);
      const before = this.told[tank.index] ?? 'direct';
      if (mode !== before) events.mode?.(tank.name, mode);
      this.told[tank.index] = mode;
    }
  }
}
