import { createServer, ServerResponse, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { checkOverload } from '../../lib/overload/settings.js';
import { Refusals } from '../../lib/transports/http/refusal.js';
import { until } from '../support/until.js';

/** A Node that keeps elsewhere whether it has sent the head: the field is still true or false, and no longer a boolean. */
class HeadElsewhere<Request extends IncomingMessage> extends ServerResponse<Request> {
  private mark = 0;

  get _headerSent(): number {
    return this.mark;
  }

  set _headerSent(isSent: boolean | number) {
    this.mark = Number(isSent);
  }
}

const REQUESTS = [
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
  'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
];

interface Refused {
  /** Answers that a caller reads on one connection, until it is closed. */
  readonly texts: readonly string[];
  /** The number of writes of the server for each of them. */
  readonly writes: readonly number[];
  /** Whether the body was put behind the head, in one text. */
  readonly isOneText: readonly boolean[];
}

async function refusalsBy(Response: typeof ServerResponse): Promise<Refused> {
  const refusals = new Refusals(checkOverload({ retryAfter: '1s' }), 'https://problems.example');
  const writes: number[] = [];
  const isOneText: boolean[] = [];
  const server = createServer({ ServerResponse: Response }, (request, response) => {
    const socket = response.socket as Socket;
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    let count = 0;
    socket.write = (...args: unknown[]) => (count++, write(...args));
    refusals.send(request, response);
    socket.write = write;
    writes.push(count);
    isOneText.push((response as unknown as { _header: string })._header.includes('OVERLOADED'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let [text, isClosed] = ['', false];
  socket.setEncoding('latin1').on('data', (part: string) => (text += part));
  socket.on('close', () => (isClosed = true));
  const texts: string[] = [];
  for (const [i, request] of REQUESTS.entries()) {
    text = '';
    socket.write(request);
    const isHead = request.startsWith('HEAD');
    await until(() => (isHead ? text.endsWith('\r\n\r\n') : text.endsWith('}')));
    texts.push(text);
    expect(writes).toHaveLength(i + 1);
  }
  await until(() => isClosed);
  server.close();
  return { texts, writes, isOneText };
}

describe('a refusal', () => {
  it('is one write, with its body behind its head', async () => {
    const { texts, writes, isOneText } = await refusalsBy(ServerResponse);
    expect(writes).toEqual([1, 1, 1, 1, 1]);
    expect(isOneText).toEqual([true, false, true, true, true]);
    for (const [i, text] of texts.entries()) {
      const [head = '', body = ''] = text.split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1.1 503 Service Unavailable\r\n/);
      const length = Number(/content-length: (\d+)/i.exec(head)![1]);
      expect(length).toBeGreaterThan(100);
      expect(body).toHaveLength(REQUESTS[i]!.startsWith('HEAD') ? 0 : length);
    }
  });

  it('says the same where Node keeps its head elsewhere', async () => {
    const { texts, isOneText } = await refusalsBy(HeadElsewhere);
    expect(isOneText).toEqual([false, false, false, false, false]);
    expect(texts).toEqual((await refusalsBy(ServerResponse)).texts);
  });
});
