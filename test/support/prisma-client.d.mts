interface Arguments {
  readonly where?: { readonly id: number };
  readonly data?: { readonly id: number; readonly item: string };
}

/** A client of the generator, as far as tests use it. */
export declare class PrismaClient {
  constructor(options: { readonly adapter: object });
  readonly order: Record<
    'findUnique' | 'findUniqueOrThrow' | 'create',
    (args: Arguments) => Promise<unknown>
  >;
  $queryRawUnsafe(sql: string): Promise<unknown>;
  $extends(extension: object): PrismaClient;
  $disconnect(): Promise<void>;
}
