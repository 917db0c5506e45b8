import { Logger, type INestApplication } from '@nestjs/common';

const nothing = (): void => {};

/** The warnings of an application, from its start on; errors and the rest are left out. */
export class Warnings {
  readonly texts: string[] = [];

  /** As the `prepare` of an application. */
  readonly listen = (app: INestApplication): void => app.useLogger(this.logger);

  start(): void {
    Logger.overrideLogger(this.logger);
  }

  stop(): void {
    Logger.overrideLogger(false);
  }

  private readonly logger = {
    log: nothing,
    error: nothing,
    warn: (text: string) => this.texts.push(text),
  };
}

/** The messages that were logged as errors. */
export class LoggedErrors {
  readonly errors: unknown[] = [];

  start(): void {
    const error = (what: unknown): void => void this.errors.push(what);
    Logger.overrideLogger({ log: nothing, warn: nothing, error });
  }

  stop(): void {
    Logger.overrideLogger(false);
  }
}

/** Every line of an application's log, as `level text`, and the stacks of its errors. */
export class LogLines {
  readonly lines: string[] = [];
  readonly stacks: string[] = [];

  start(): void {
    const line = (level: string) => (text: unknown) =>
      void this.lines.push(`${level} ${String(text)}`);
    const error = (text: unknown, stack: unknown): void => {
      this.lines.push(`error ${String(text)}`);
      // Nest gives what was thrown itself, or its stack beside its words and before the logger's own name.
      const told = text instanceof Error ? text.stack : stack;
      if (typeof told === 'string' && told.includes('\n')) this.stacks.push(told);
    };
    Logger.overrideLogger({ log: line('log'), warn: line('warn'), error });
  }

  stop(): void {
    Logger.overrideLogger(false);
  }

  /** Those since the last look. */
  take(): string[] {
    return this.lines.splice(0);
  }
}
