import { Agent, get, type IncomingHttpHeaders } from 'node:http';

/** Tells what was promised beside what was seen, line by line, while it happens. */
export class Tour {
  private promises = 0;
  private kept = 0;

  scene(title: string): void {
    console.log(`\n${title}`);
  }

  tell(text: string): void {
    console.log(text);
  }

  see(promised: string, seen: string, isKept: boolean): void {
    this.promises++;
    if (isKept) this.kept++;
    console.log(`  promised  ${promised}\n  ${isKept ? '✓' : '✗'} seen    ${seen}`);
  }

  /** Prints the sum; resolves to what the process should end with. */
  end(): number {
    console.log(`\n${this.kept} of ${this.promises} promises were kept.`);
    return this.kept === this.promises ? 0 : 1;
  }
}

export interface Answers {
  readonly asked: number;
  readonly allowed: number;
  /** Names of the policies that refused. */
  readonly refusedBy: readonly string[];
  readonly seconds: number;
}

// Connections are kept: on a small machine making them takes longer than the limits allow.
const agent = new Agent({ keepAlive: true, maxSockets: 60 });

/** Asks so many times at once, so that a slow machine gives tokens no time to come back. */
export async function askAtOnce(
  asked: number,
  url: string,
  headersOf: (id: number) => IncomingHttpHeaders = () => ({}),
): Promise<Answers> {
  const startedMs = performance.now();
  const answers = await Promise.all(
    Array.from({ length: asked }, (_, id) => answerOf(url, headersOf(id))),
  );
  return {
    asked,
    allowed: answers.filter(({ status }) => status === 200).length,
    refusedBy: [...new Set(answers.flatMap(({ body }) => body['violated-policies'] ?? []))],
    seconds: (performance.now() - startedMs) / 1000,
  };
}

interface Answer {
  readonly status: number | undefined;
  readonly body: { readonly 'violated-policies'?: readonly string[] };
}

function answerOf(url: string, headers: IncomingHttpHeaders): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.once('end', () => {
        resolve({ status: response.statusCode, body: JSON.parse(text) as Answer['body'] });
      });
    });
    asked.once('error', reject);
  });
}

/** What a bucket of `burst` lets pass at once: all of it, and what comes back meanwhile. */
export function seeBurst(
  tour: Tour,
  promised: string,
  answers: Answers,
  { burst, rate }: { readonly burst: number; readonly rate: number },
): void {
  const { asked, allowed, refusedBy, seconds } = answers;
  const most = Math.min(asked, Math.floor(burst + rate * seconds));
  const least = Math.min(asked, burst);
  // A machine that cannot ask faster than tokens come back has nothing to see refused.
  const tooSlow =
    asked > burst ? `; this machine asks ${Math.round(asked / seconds)} a second` : '';
  const by =
    refusedBy.length > 0 ? `; refused by ${refusedBy.join(', ')}` : allowed < asked ? '' : tooSlow;
  tour.see(
    promised,
    `${allowed} of ${asked} in ${seconds.toFixed(2)} s (from ${least} to ${most})${by}`,
    allowed >= least && allowed <= most,
  );
}
