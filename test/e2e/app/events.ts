import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { DroppedEvents, RateLimit } from 'nestjs-weir';
import { type Caller } from './caller.js';

/** Events, which only messages have: no sender learns what became of one. */
@Controller()
export class Events {
  private readonly seen: string[] = [];

  constructor(@Inject(DroppedEvents) private readonly dropped: DroppedEvents) {}

  @EventPattern('event')
  @RateLimit('two')
  event({ key }: Caller): void {
    this.seen.push(key);
  }

  @MessagePattern('events')
  events(): object {
    return { seen: this.seen, dropped: this.dropped.byHandler() };
  }
}
