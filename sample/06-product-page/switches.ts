import {
  BadRequestException,
  Inject,
  Injectable,
  Optional,
  ServiceUnavailableException,
} from '@nestjs/common';
import { Degradation, RateLimitConfig, type DegradeLevel } from 'nestjs-weir';
import { RedisSwitch } from './redis-switch.js';
import { LIMITS, RESOURCE } from './settings.js';
import { MODES, UPSTREAMS, Upstreams, type UpstreamMode, type UpstreamName } from './upstreams.js';

const OPERATOR = [
  ...['force', 'force 1', 'force 2', 'force 3', 'force 4'],
  ...['disable', 'observe', 'resume'],
] as const;
type OperatorWord = (typeof OPERATOR)[number];

/** Everything that can be turned, by name, with what it can be turned to. */
const POSITIONS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(UPSTREAMS.map((name) => [name, MODES])),
  redis: ['on', 'off'],
  limit: Object.keys(LIMITS),
  operator: OPERATOR,
};

@Injectable()
export class Switches {
  constructor(
    private readonly upstreams: Upstreams,
    private readonly config: RateLimitConfig,
    private readonly degradation: Degradation,
    @Optional() @Inject(RedisSwitch) private readonly redis?: RedisSwitch,
  ) {}

  /** Where they stand. There is none for Redis where there is no Redis. */
  positions(): Record<string, string> {
    const { rate } = this.config.current().document.policies!.view!;
    const limit = rate === LIMITS.small ? 'small' : 'large';
    return { ...this.upstreams.modes, limit, ...(this.redis && { redis: this.redis.position }) };
  }

  /** All of them are looked at before one is turned. */
  async turn(wanted: Readonly<Record<string, unknown>>): Promise<void> {
    const turns = Object.entries(wanted);
    for (const [name, position] of turns) this.check(name, position);
    for (const [name, position] of turns) await this.turnOne(name, position as string);
  }

  private check(name: string, position: unknown): void {
    const positions = POSITIONS[name];
    if (positions === undefined || (name === 'redis' && this.redis === undefined)) {
      const names = Object.keys(POSITIONS).join(', ');
      throw new BadRequestException(`There is no switch "${name}" here; there are ${names}.`);
    }
    if (!positions.includes(position as string)) {
      throw new BadRequestException(`"${name}" can be one of: ${positions.join(', ')}.`);
    }
  }

  private async turnOne(name: string, position: string): Promise<void> {
    switch (name) {
      case 'redis':
        return this.redis!.turn(position as 'on' | 'off');
      case 'limit':
        return this.setLimit(position as keyof typeof LIMITS);
      case 'operator':
        return this.tell(position as OperatorWord);
      default:
        this.upstreams.modes[name as UpstreamName] = position as UpstreamMode;
    }
  }

  /** A change of the configuration, which every process of a fleet would hear of. */
  private async setLimit(limit: keyof typeof LIMITS): Promise<void> {
    try {
      await this.config.update({ policies: { view: { rate: LIMITS[limit] } } }, { by: 'the page' });
    } catch (error) {
      throw new ServiceUnavailableException(`The limit stays: ${(error as Error).message}`);
    }
  }

  private tell(word: OperatorWord): void {
    const { degradation } = this;
    const [what, level] = word.split(' ');
    switch (what) {
      case 'disable':
        return degradation.disable(RESOURCE);
      case 'observe':
        return degradation.observe(RESOURCE);
      case 'resume':
        return degradation.resume(RESOURCE);
      default:
        return degradation.force(RESOURCE, (level && (Number(level) as DegradeLevel)) || undefined);
    }
  }
}
