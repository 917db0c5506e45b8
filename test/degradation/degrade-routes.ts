import { Controller, type Type } from '@nestjs/common';
import {
  Degrade,
  degradeMessage,
  RateLimit,
  RateLimitModule,
  type DegradeContext,
  type DegradeOptions,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { type Stage } from './degrade-stage.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

const NO_CACHES = { level1: false, level2: false } as const;

/** The fallbacks that routes have besides their handlers. */
export const OFFERS = {
  level1: { level2: false },
  level2: { level1: false },
  level3: { ...NO_CACHES, level3: 'simplified' },
  level4: { ...NO_CACHES, level4: { name: 'something' } },
  words: { ...NO_CACHES, level4: degradeMessage('The shop is busy') },
  all: { level3: 'simplified', level4: { name: 'something' } },
  nothing: NO_CACHES,
} as const satisfies Record<string, DegradeOptions>;

export type Offer = keyof typeof OFFERS;
export const OFFERED = Object.keys(OFFERS) as Offer[];

/** Nothing is left of it from the start, so every request that is charged to it is denied. */
const CLOSED = { rate: 1, period: '1d', key: 'global' } as const;

export function moduleOptions(stage: Stage, more: RateLimitModuleInput = {}): RateLimitModuleInput {
  return { clock: stage.clock, policies: { closed: CLOSED }, ...more };
}

/** A controller with one handler for each offer, bound to a transport by `bind`. */
export function productsController(
  stage: Stage,
  bind: (offer: Offer) => MethodDecorator,
  more: DegradeOptions = {},
): Type {
  class Products {
    simplified({ reason }: DegradeContext): object {
      return { name: `kettle, ${reason}` };
    }
  }
  for (const offer of OFFERED) {
    const value = (): unknown => stage.play();
    Object.defineProperty(Products.prototype, offer, { value, configurable: true, writable: true });
    const descriptor = Object.getOwnPropertyDescriptor(Products.prototype, offer)!;
    const limit = RateLimit(() => (stage.isLimited ? 'closed' : undefined));
    for (const decorate of [bind(offer), limit, Degrade({ ...OFFERS[offer], ...more })]) {
      decorate(Products.prototype, offer, descriptor);
    }
    Object.defineProperty(Products.prototype, offer, descriptor);
  }
  Controller()(Products);
  return Products;
}

/** An application of these controllers with limits. */
export function startLimited(
  controllers: Type[],
  options: RateLimitModuleInput = {},
  providers: Type[] = [],
): Promise<HttpApp> {
  const imports = [RateLimitModule.forRoot(options)];
  return startHttp('express', { imports, controllers, providers });
}
