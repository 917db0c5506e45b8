import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

// Browsers that look at a dashboard, as far as its server sees them: they read whatever comes.

const [url = '', count = '0'] = process.argv.slice(2);

async function look(): Promise<void> {
  const asked = get(`${url}api/stream`, { agent: false });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`the answer was ${answer.statusCode}`);
  // The first bytes are a comment; the frame follows.
  await once(answer, 'data');
  answer.resume();
}

await Promise.all(Array.from({ length: Number(count) }, look));
process.send!('all look');
process.on('disconnect', () => process.exit(0));
