import { ConsoleLogger, type INestApplication } from '@nestjs/common';

export const quietLogger = new ConsoleLogger({ logLevels: ['warn', 'error', 'fatal'] });

/** The port in the environment, or the usual one. */
export function portFrom(text = '3000'): number {
  const number = Number(text || NaN);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  console.error(`PORT must be a number from 0 to 65535, and is "${text}".`);
  process.exit(1);
}

/** Listens and gives the address, or says in one line why not; the app is closed then. */
export async function listen(
  app: INestApplication,
  port: number,
  command = 'npm start',
  { endsAlone = true } = {},
): Promise<string | undefined> {
  // Ctrl-C and SIGTERM close the app, and with it the limiter; the process ends by that.
  if (endsAlone) app.enableShutdownHooks();
  try {
    // Nest would log a port that is taken beside the one line that says what to do about it.
    app.useLogger(false);
    await app.listen(port);
    app.useLogger(quietLogger);
    return (await app.getUrl()).replace('[::1]', 'localhost');
  } catch (error) {
    console.error(reasonOf(error, port, command));
    await app.close();
    process.exitCode = 1;
    return undefined;
  }
}

function reasonOf(error: unknown, port: number, command: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken. Choose another: PORT=${port + 1} ${command}`;
    case 'EACCES':
      return `Port ${port} is not open to you. Choose one above 1023: PORT=3000 ${command}`;
    default:
      return message;
  }
}
