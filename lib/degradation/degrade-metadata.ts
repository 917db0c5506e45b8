import { type DegradeOptions } from './degrade-options.js';

const DEGRADE = Symbol('weir:degrade');

export function setDegrade(target: object, options: DegradeOptions): void {
  Reflect.defineMetadata(DEGRADE, options, target);
}

/** What `@Degrade` says on a class or on a method; undefined if it is not there. */
export function degradeOf(target: object): DegradeOptions | undefined {
  return Reflect.getMetadata(DEGRADE, target) as DegradeOptions | undefined;
}
