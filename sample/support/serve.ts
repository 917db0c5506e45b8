import { type INestApplication } from '@nestjs/common';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, portFrom } from './listen.js';
import { Tour } from './tour.js';

export interface Guide {
  /** What starts the sample. */
  readonly command: string;
  /** What to try at an address, and what there is to see. */
  readonly welcome: (address: string) => string;
  /** Tries it. */
  readonly tour: (address: string, tour: Tour) => Promise<void>;
}

/** `npm start -- tour` tries everything, tells what was promised and what was seen, and ends. */
export const isTour = process.argv[2] === 'tour';

/** Runs a sample; resolves to whether it listens. */
export async function serve(app: INestApplication, guide: Guide): Promise<boolean> {
  const port = portFrom(process.env.PORT ?? (isTour ? '0' : undefined));
  const address = await listen(app, port, guide.command);
  if (address === undefined) return false;
  await announce(address, guide);
  if (isTour) await app.close();
  return true;
}

/** Says what to try, or tries it. */
export async function announce(address: string, guide: Guide): Promise<void> {
  if (isTour) await guided((tour) => guide.tour(address, tour));
  else console.log(`\n${textOf(guide, address)}`);
}

/** Runs a tour to its end, which is what the process ends with. */
export async function guided(tour: (report: Tour) => Promise<void>): Promise<void> {
  const report = new Tour();
  await tour(report);
  process.exitCode = report.end();
}

/** `GET /` says what to try; a browser gets the page instead, where there is one. */
export function welcomeCallers(
  app: INestApplication,
  guide: () => Guide,
  { hasPage = false } = {},
): void {
  app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    const { method, url, headers } = request;
    const isPage = hasPage && headers.accept?.includes('text/html') === true;
    if (url !== '/' || method !== 'GET' || isPage) return next();
    response.setHeader('content-type', 'text/plain; charset=utf-8');
    response.end(textOf(guide(), `http://${headers.host}`));
  });
}

const textOf = ({ command, welcome }: Guide, address: string): string => `${welcome(address).trim()}

# All of it by itself, with what was promised beside what was seen:
${command} -- tour
`;
