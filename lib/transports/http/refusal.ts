import { type IncomingMessage, type ServerResponse } from 'node:http';
import { refusalWaits } from '../../overload/refusal-waits.js';
import { type OverloadSettings } from '../../overload/settings.js';
import { overloadedBody } from '../../requests/rejections.js';
import { waitSeconds } from '../shared/requests.js';
import { problemOf } from './problem.js';

/** A body that is larger, or of unknown size, is not worth reading for the sake of its connection. */
const MOST_UNREAD_BYTES = 65_536;

interface Answer {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** The same, and the connection is closed. */
  readonly closing: readonly string[];
  readonly byName: Readonly<Record<string, string>>;
  /** As a text, which Node sends in one piece with the headers; it has no letters that two bytes would need. */
  readonly body: string;
}

/**
 * The answer to a request that the line refuses. All of it is made in advance: the process has no time, and a
 * refusal that costs as much as an answer helps nobody.
 */
export class Refusals {
  private readonly answers: readonly Answer[];
  private next = 0;

  constructor({ retryAfterMs, headers }: OverloadSettings, problemBase: string) {
    const seconds = refusalWaits(waitSeconds(retryAfterMs));
    this.answers = seconds.map((wait) => answerOf(wait, headers, problemBase));
  }

  send(request: IncomingMessage, response: ServerResponse): void {
    const answer = this.answers[this.next]!;
    this.next = (this.next + 1) % this.answers.length;
    response.sendDate = false;
    if (request.httpVersionMajor >= 2) {
      response.writeHead(503, answer.byName);
      response.end(answer.body, 'latin1');
      return;
    }
    const headers = isCheapToRead(request) ? answer.headers : answer.closing;
    response.writeHead(503, headers as string[]);
    if (request.method !== 'HEAD' && appendToHead(response, answer.body)) response.end();
    else response.end(answer.body, 'latin1');
  }
}

/**
 * Puts the body behind the head, so that Node sends both as one text: as a body of its own it travels with an empty
 * last piece in a list of buffers, which is a sixth of what a refusal costs (measured at a bare server). False where
 * this Node keeps its head elsewhere.
 */
function appendToHead(response: ServerResponse, body: string): boolean {
  const head = response as { _header?: unknown; _headerSent?: unknown };
  if (typeof head._header !== 'string' || head._headerSent !== false) return false;
  head._header += body;
  return true;
}

function answerOf(
  seconds: number,
  more: Readonly<Record<string, string>>,
  problemBase: string,
): Answer {
  const text = JSON.stringify(problemOf(overloadedBody(seconds * 1000), problemBase));
  const body = text.replace(/[^ -~]/g, (letter) => `\\u${hexOf(letter)}`);
  const byName = {
    'Content-Type': 'application/problem+json; charset=utf-8',
    'Content-Length': String(body.length),
    'Retry-After': String(seconds),
    'Cache-Control': 'no-store',
    ...more,
  };
  const headers = Object.entries(byName).flat();
  return { headers, closing: [...headers, 'Connection', 'close'], byName, body };
}

const hexOf = (letter: string): string => letter.charCodeAt(0).toString(16).padStart(4, '0');

/** Node reads and forgets the rest of a request so that its connection can be used again. */
function isCheapToRead({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  if (headers['transfer-encoding'] !== undefined) return false;
  return Number(headers['content-length'] ?? 0) <= MOST_UNREAD_BYTES;
}
