import { Controller, Get, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimit, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';

export const HELLO = { hello: { rate: '1/h' } } as const;

/** The message with which an application of these parts fails to start; undefined if it does. */
export async function failure(...parts: unknown[]): Promise<string | undefined> {
  const isModule = (part: unknown): boolean =>
    typeof part === 'object' || Reflect.hasMetadata('imports', part as object);
  const isController = (part: unknown): boolean =>
    !isModule(part) && Reflect.hasMetadata('path', part as object);
  try {
    const app = (
      await Test.createTestingModule({
        imports: parts.filter(isModule) as Type[],
        controllers: parts.filter(isController) as Type[],
        providers: parts.filter((part) => !isModule(part) && !isController(part)) as Type[],
      }).compile()
    ).createNestApplication({ logger: false });
    await app.init();
    await app.close();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

export const root = (options: RateLimitModuleInput | object = { policies: HELLO }): object =>
  RateLimitModule.forRoot(options);

@Controller()
export class HelloController {
  @Get()
  @RateLimit('hello')
  hello(): string {
    return 'hello';
  }
}
