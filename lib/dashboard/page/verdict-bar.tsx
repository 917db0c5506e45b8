import { type PageFrame } from '../frame.js';
import { count, ms, percent, plural, sentence, span, text, time } from './format.js';
import { denialsOf, type Judgement } from './judge.js';
import { degradedOf, seriesOf } from './rates.js';
import { redisOf } from './store.js';

const LEVELS: Readonly<Record<string, string>> = {
  good: '✓',
  info: 'i',
  warning: '!',
  bad: '!',
};

/** The verdict in one sentence, and five figures. */
export function VerdictBar({ frame }: { readonly frame: PageFrame }) {
  const { verdict, state, inProcess } = frame;
  const total = seriesOf(frame, 'total');
  const store = seriesOf(frame, 'store');
  const degraded = degradedOf(total);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  const isAlarmed = state.alerts.some(
    (one) => one.rule === 'denialRise' && one.series === 'total' && one.state === 'firing',
  );
  const denials = denialsOf(rate, denied, frame.usual, isAlarmed);
  const redis = redisOf(frame);
  return (
    <section class={`verdict ${verdict.level}`} aria-label="In one sentence">
      <span class="mark" aria-hidden="true">
        {LEVELS[verdict.level]}
      </span>
      <div class="say">
        <strong>{inOneLine(text(verdict.text))}</strong>
        <span>
          {/* Of the verdict and its cause: what else is known stands behind it. */}
          {verdict.why !== undefined && `${sentence(text(verdict.why))} `}
          {verdict.sinceMs !== undefined &&
            `Since ${time(verdict.sinceMs)}, ${inOneLine(span(frame.nowMs - verdict.sinceMs))}. `}
          {verdict.why === undefined && sentence(text(frame.aside))}
          {frame.news !== '' && ` ${text(frame.news)}`}
          {frame.unseen !== null && ` ${text(frame.unseen.said)}`}
        </span>
      </div>
      <dl class="facts">
        <Fact name="Decisions" value={`${count(rate)} /s`} note={nodesText(frame)} />
        <Fact
          name="Denied"
          value={`${count(denied)} /s`}
          note={denials.word}
          tone={denials.tone === 'bad' ? 'deny' : ''}
        />
        <Fact
          name="Degraded"
          value={`${count(degraded)} /s`}
          note={degraded >= 0.05 ? `${percent(degraded / rate)} of all` : 'none'}
          tone={degraded >= 0.05 ? 'degraded' : ''}
        />
        <Fact
          name="In process"
          value={inProcess === null ? '–' : percent(inProcess)}
          note="without a call"
        />
        {redis === undefined ? (
          <Fact name="Response p99" value={ms(total?.p99Ms)} />
        ) : (
          <Fact
            name="Redis p99"
            value={state.store!.isUp ? ms(store?.p99Ms) : 'away'}
            note={state.store!.isUp ? redis.word : 'no answer'}
            tone={TONES[redis.tone]}
          />
        )}
      </dl>
    </section>
  );
}

/** A number and its unit. */
const inOneLine = (words: string): string => words.replace(/(\d) (?=%|\w+$)/g, '$1\u00a0');

const TONES: Readonly<Record<Judgement['tone'], string>> = {
  ...{ ok: '', warn: 'degraded', bad: 'deny' },
};

const nodesText = ({ unseen, state: { nodeCount } }: PageFrame): string =>
  unseen === null ? `on ${plural(nodeCount, 'node')}` : 'on this node';

function Fact(props: { name: string; value: string; note?: string; tone?: string }) {
  const [, value, unit] = /^(.*?)(?: (\S+))?$/.exec(props.value)!;
  return (
    <div>
      <dt>{props.name}</dt>
      <dd class={props.tone ? `is-${props.tone}` : ''}>
        {value}
        <small>{unit}</small>
        {props.note !== undefined && <span>{props.note}</span>}
      </dd>
    </div>
  );
}
