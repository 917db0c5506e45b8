import { connect } from 'node:http2';
import { request } from 'node:http';
import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { startHttp } from './http-apps.js';

export const HTTP_WIRES = ['express', 'fastify', 'fastify on HTTP/2'] as const;
export type HttpWireName = (typeof HTTP_WIRES)[number];

export interface HttpQuestion {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Also for GET, which fetch does not send. */
  readonly body?: string;
  /** The caller hangs up. */
  readonly signal?: AbortSignal;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly json: unknown;
}

export interface HttpWire {
  readonly app: INestApplication;
  ask(path: string, question?: HttpQuestion): Promise<HttpReply>;
  close(): Promise<void>;
}

/** A real application on HTTP/1.1 or HTTP/2, and a client that sends whatever it is told to. */
export async function startHttpWire(
  name: HttpWireName,
  metadata: ModuleMetadata,
  prepare?: (app: INestApplication) => void,
): Promise<HttpWire> {
  if (name !== 'fastify on HTTP/2') {
    const { app, url, close } = await startHttp(name, metadata, prepare);
    return { app, close, ask: (path, question) => askHttp1(url + path, question) };
  }
  const adapter = new FastifyAdapter({ http2: true } as object);
  const { app, url, close } = await startHttp('fastify', metadata, prepare, adapter);
  const session = connect(url);
  const ask = (path: string, { method = 'GET', headers, body, signal }: HttpQuestion = {}) =>
    new Promise<HttpReply>((resolve, reject) => {
      const stream = session.request(
        { ':method': method, ':path': path, ...headers },
        { endStream: body === undefined, ...(signal !== undefined && { signal }) },
      );
      let reply: Record<string, unknown> = {};
      let text = '';
      stream.on('response', (received) => (reply = received));
      stream.setEncoding('utf8').on('data', (part: string) => (text += part));
      stream.on('end', () => resolve(replyOf(Number(reply[':status']), reply, text)));
      stream.on('error', reject);
      if (body !== undefined) stream.end(body);
    });
  return {
    app,
    ask,
    close: async () => {
      session.close();
      await close();
    },
  };
}

function askHttp1(url: string, { method = 'GET', headers, body, signal }: HttpQuestion = {}) {
  return new Promise<HttpReply>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const options = { method, headers: { ...headers, ...length }, signal };
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve(replyOf(response.statusCode!, response.headers, text)));
    });
    sent.on('error', reject).end(body);
  });
}

function replyOf(status: number, headers: Readonly<Record<string, unknown>>, text: string) {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status, headers, text, json };
}
