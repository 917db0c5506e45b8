import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

// Browsers that look at a dashboard, as far as its server sees them: they read whatever comes, and come again when their
// stream ends. One of many reads nothing.

const [url = '', count = '0'] = process.argv.slice(2);

async function look(isDeaf: boolean): Promise<void> {
  const asked = get(`${url}api/stream`, { agent: false });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`the answer was ${answer.statusCode}`);
  // The first bytes are a comment; the frame follows.
  await once(answer, 'data');
  answer.on('error', () => undefined);
  if (isDeaf) return void answer.pause();
  answer.once('close', () => void look(false)).resume();
}

const viewers = Number(count);
await Promise.all(
  Array.from({ length: viewers }, (_, index) => look(viewers > 1 && index === viewers - 1)),
);
process.send!('all look');
process.on('disconnect', () => process.exit(0));
