import { type Kind } from './traffic.js';

/** What the buttons move, wherever it runs. */
export interface Stage {
  /** So many times as much of these, for a while. */
  raise(kinds: readonly Kind[], factor: number, seconds: number): void;
  takeStoreAway(seconds: number): void;
  slowDatabase(seconds: number): void;
}

/** A call of the stage, as a message between processes. */
export type StageCall = {
  readonly [Name in keyof Stage]: {
    readonly call: Name;
    readonly args: Parameters<Stage[Name]>;
  };
}[keyof Stage];

/** The stage of another process. */
export function stageOver(send: (call: StageCall) => void): Stage {
  return {
    raise: (...args) => send({ call: 'raise', args }),
    takeStoreAway: (...args) => send({ call: 'takeStoreAway', args }),
    slowDatabase: (...args) => send({ call: 'slowDatabase', args }),
  };
}

export function callOn(stage: Stage, { call, args }: StageCall): void {
  (stage[call] as (...given: unknown[]) => void)(...args);
}
