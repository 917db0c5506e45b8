import { RestartNeededError } from '../common/errors.js';
import { type ConfigConsumer, type ConfigSnapshot } from '../config/rate-limit-config.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { checkQuota } from '../limiter/quota-options.js';
import { type ConfigStore } from '../stores/config-store.js';
import { documentIn } from './stored-config.js';

/** A process that is further behind refuses everything, whatever is written. */
const LOOK_BACK = 50;

/**
 * The clusters whose quota the running processes keep; undefined stands for those without a quota,
 * who take any. A process has it from its start, so what suits none of them would be refused by all.
 */
export class RunningQuotas implements ConfigConsumer {
  private constructor(private readonly ids: ReadonlySet<string | undefined>) {}

  static async of(store: ConfigStore): Promise<RunningQuotas> {
    const revisions = new Set((await store.acknowledgements()).map(({ revision }) => revision));
    if (revisions.size === 0) return new RunningQuotas(new Set());
    const history = await store.history(LOOK_BACK);
    const applied = history.filter(({ revision }) => revisions.has(revision));
    return new RunningQuotas(new Set(applied.map((record) => clusterIdIn(documentIn(record)))));
  }

  /** In the words of the processes; undefined if one of them could follow, or none runs. */
  objectionTo(document: ConfigDocument): RestartNeededError | undefined {
    const id = clusterIdIn(document);
    if (this.ids.size === 0 || this.ids.has(id)) return undefined;
    const known = [...this.ids].filter((one) => one !== undefined).sort();
    if (id === undefined) return new RestartNeededError('quota', undefined, 'a quota');
    if (known.length === 0) return undefined;
    const wanted = known.map((one) => `"${one}"`).join(' or ');
    return new RestartNeededError('quota.clusterId', id, wanted);
  }

  /** What is stored already is not disputed: it may be what is to be taken back. */
  prepare({ document }: ConfigSnapshot, previous: ConfigSnapshot | undefined): () => void {
    const objection = previous && this.objectionTo(document);
    if (objection !== undefined) throw objection;
    return () => {};
  }
}

function clusterIdIn(document: ConfigDocument): string | undefined {
  const { quota } = limitsOf(document);
  return quota && checkQuota(quota).clusterId;
}
