import { type Host } from './host.js';
import { type World } from './world.js';

/** One process, as the simulator sees it. */
export interface LimiterNode {
  request(app: number, cost: number): boolean | Promise<boolean>;
  /** Stops in good order. */
  leave(): Promise<void>;
}

/** A way to limit a fleet. */
export interface Contender {
  readonly name: string;
  /** Sets up what its nodes share, and returns how to make one of them. */
  start(world: World): (host: Host) => LimiterNode;
}
