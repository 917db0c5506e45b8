import { type FactoryProvider } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/** The checked options of the module. A feature injects them and declares the slice that it reads. */
export const OPTIONS = Symbol('RATE_LIMIT_OPTIONS');

/** An application of microservices alone has no HTTP adapter. */
export const OPTIONAL_ADAPTER = { token: HttpAdapterHost, optional: true };

/** A provider that is made by a factory. */
export function provide<T>(
  token: FactoryProvider<T>['provide'],
  inject: FactoryProvider['inject'],
  useFactory: (...args: never[]) => T,
): FactoryProvider<T> {
  return { provide: token, inject: inject!, useFactory: useFactory as (...args: unknown[]) => T };
}
