import { createHash } from 'node:crypto';
import { compileQuota, numbered, type QuotaFigures } from '../../algorithms/quota/quota-limits.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { packLimits, packNumbers } from './quota-wire.js';
import { type Scripts } from './scripts.js';

/** Whether limits were written, and the revision that holds now. */
export interface Published {
  readonly written: boolean;
  readonly revision: number;
}

/** The limits that this process would have in the record. */
interface OwnLimits {
  readonly figures: QuotaFigures;
  readonly revision: number;
  /** The apps as this process numbers them. */
  readonly names: readonly string[];
}

/** Each attempt in vain means that another process has written. */
const MOST_ATTEMPTS = 16;
/** Beyond so many apps that are gone the list begins anew, and the ledger with it, empty. */
const MOST_RETIRED = 256;

/**
 * The limits of a cluster in Redis, with a revision: the highest one stays, whichever process writes it,
 * and the others find it done. The numbers of the apps are part of the record, because the
 * processes may not know the same apps.
 */
export class LimitsRecord {
  /** As of the latest reply; undefined before the first. */
  numbers: AppNumbers | undefined;
  /** False if there may be something to write or to read before a call. */
  isCurrent = false;
  /** False if the ledger has the own limits, but not under the own revision: no call waits for that. */
  isPublished = false;
  private own: OwnLimits;
  private syncing: Promise<Published> | undefined;

  constructor(
    private readonly key: string,
    private readonly scripts: Pick<Scripts, 'seedLimits'>,
    figures: QuotaFigures,
  ) {
    this.own = { figures, revision: 0, names: figures.apps.map(({ app }) => app) };
  }

  get figures(): QuotaFigures {
    return this.own.figures;
  }

  get names(): readonly string[] {
    return this.own.names;
  }

  /** From now on these are the own limits; `sync` writes them. */
  apply(figures: QuotaFigures, revision: number): void {
    const { own } = this;
    this.isPublished = false;
    if (figures === own.figures) {
      this.own = { ...own, revision };
      return;
    }
    const apps = figures.apps.map(({ app }) => app);
    this.own = { figures, revision, names: numbered(own.names, apps) };
    this.isCurrent = false;
  }

  /** The ledger has numbers for so many apps: if it has more, there is something to read. */
  noticeApps(apps: number): void {
    if (apps > (this.numbers?.names.length ?? 0)) this.isCurrent = false;
  }

  /** Writes the own limits if they are of a later revision, and reads what holds. */
  sync(): Promise<Published> {
    this.syncing ??= this.settle().finally(() => (this.syncing = undefined));
    return this.syncing;
  }

  private async settle(): Promise<Published> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const { own, numbers: known } = this;
      const published = await this.write(own, known);
      const isDone = published.written || published.revision >= own.revision;
      if (isDone && own === this.own) {
        this.isCurrent = true;
        this.isPublished = true;
        return published;
      }
    }
    throw new StoreUnavailableError('others keep changing the limits');
  }

  /** Only in place of the list of apps that is known: the packed limits are in its order. */
  private async write(own: OwnLimits, known: AppNumbers | undefined): Promise<Published> {
    const numbers = new AppNumbers(known === undefined ? own.names : grown(known.names, own));
    const [written, revision, names] = await this.scripts.seedLimits([
      this.key,
      own.revision,
      known === undefined ? '' : JSON.stringify(known.names),
      JSON.stringify(numbers.names),
      JSON.stringify(own.figures),
      packLimits(compileQuota(own.figures, numbers.names, own.revision), numbers.digest),
      packNumbers(numbers.digests),
    ]);
    if (written === 1) this.numbers = numbers;
    else this.numbers = names === '' ? undefined : sameOrNew(known, JSON.parse(names) as string[]);
    return { written: written === 1, revision };
  }
}

function grown(known: readonly string[], { figures }: OwnLimits): readonly string[] {
  const apps = figures.apps.map(({ app }) => app);
  const names = numbered(known, apps);
  return names.length - apps.length > MOST_RETIRED ? apps : names;
}

function sameOrNew(known: AppNumbers | undefined, names: readonly string[]): AppNumbers {
  const isSame =
    known?.names.length === names.length && known.names.every((n, i) => n === names[i]);
  return isSame ? known : new AppNumbers(names);
}

/** So many bits of a digest are a whole number in a double. */
const DIGEST_BYTES = 6;

/**
 * The number of each app in the ledger. The digest stands for the list: a call carries it, so that
 * nothing is counted under a number that means another app to the ledger. A list that has grown keeps
 * the digests of its beginnings, and so does not shut out processes that know only one of these.
 */
export class AppNumbers {
  /** Of the first app, of the first two, and so on. */
  readonly digests: readonly number[];
  private readonly numbers: ReadonlyMap<string, number>;

  constructor(readonly names: readonly string[]) {
    let digest = 0;
    this.digests = names.map((name) => (digest = digestOf(digest, name)));
    this.numbers = new Map(names.map((name, number) => [name, number]));
  }

  get digest(): number {
    return this.digests.at(-1) ?? 0;
  }

  /** Undefined if the ledger has no such app. */
  of(name: string | undefined): number | undefined {
    return name === undefined ? undefined : this.numbers.get(name);
  }
}

function digestOf(before: number, name: string): number {
  const bytes = createHash('sha256').update(`${before}|${name}`).digest();
  return bytes.readUIntBE(0, DIGEST_BYTES);
}
