import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { Degradation, Protection, RateLimitConfig } from 'nestjs-weir';
import { DEADLINE_MS, RESOURCE } from './settings.js';
import { Switches } from './switches.js';
import { Vitals } from './vitals.js';

/** What the page shows beside the product, and what its buttons do. */
@Controller()
export class OperationsController {
  constructor(
    private readonly switches: Switches,
    private readonly degradation: Degradation,
    private readonly protection: Protection,
    private readonly config: RateLimitConfig,
    private readonly vitals: Vitals,
  ) {}

  @Get('state')
  state(): object {
    const { resources, fallbacks, caches } = this.degradation.stats();
    const upstreams = Object.entries(this.protection.stats()).map(([name, { breaker }]) => ({
      name,
      breaker: breaker?.state,
    }));
    return {
      switches: this.switches.positions(),
      recovery: resources.find(({ resource }) => resource === RESOURCE),
      answers: fallbacks.answers,
      kept: { process: caches.process.entries, stored: caches.stored },
      upstreams,
      revision: this.config.current().revision,
      deadlineMs: DEADLINE_MS,
      vitals: this.vitals.figures(),
    };
  }

  @Post('switches')
  @HttpCode(200)
  async turn(@Body() wanted: Record<string, unknown> = {}): Promise<object> {
    await this.switches.turn(wanted);
    return this.state();
  }
}
