/** Some requests of the same cost that wait for an answer now. */
export interface Need {
  readonly cost: number;
  readonly count: number;
}

/** The consumption of one method: an HTTP verb, a gRPC method, a message pattern. */
export interface MethodUse {
  readonly method: string;
  readonly cost: number;
  readonly count: number;
}

/** The consumption of an app since the last report. */
export interface Consumption {
  readonly cost: number;
  /** Requests. */
  readonly count: number;
  readonly periodMs: number;
  /** Of the requests that named one. */
  readonly methods: readonly MethodUse[];
}

/**
 * Tokens that came too late for those who had asked for them. What has flowed in since has made good
 * for them already, so only the rest goes back: with all of it the app would have two bursts.
 */
export interface LateGrant {
  readonly tokens: number;
  /** When the store took them, on its clock: `nowMicros` of the reply. */
  readonly takenMicros: number;
}

/** The report and the request of a node about one app. Amounts are whole tokens. */
export interface AppCall {
  /** The number of the app, in the order in which the store was told of it; see `numbered`. */
  readonly app: number;
  /** Leased tokens spent since the last call. */
  readonly used: number;
  /** Leased tokens that go back. */
  readonly returned: number;
  /** Tokens that counted as used and were not after all; as if they had not been granted. */
  readonly refunded?: number;
  /** Granted to requests that the node had denied by then; see `LateGrant`. */
  readonly late?: LateGrant;
  /** Tokens that requests passed with while the store's answer was late, and that it did not grant. */
  readonly owed?: number;
  /** Offered demand, admitted and denied, in tokens per second. */
  readonly demand: number;
  /** Each request is granted whole or not at all, and its tokens count as used. */
  readonly needs: readonly Need[];
  /** Tokens to add to the stock; fewer may come. */
  readonly want: number;
  /** Tokens that the node holds. For whoever watches: the store keeps its own account. */
  readonly holding?: number;
  /** Statistics: they take nothing out of any bucket. Now and then. */
  readonly consumption?: Consumption;
}

/** One call of a node, for all of its apps. */
export interface QuotaCall {
  readonly node: string;
  /** Differs between two processes of the same name, one after the other or at once. */
  readonly incarnation: string;
  /** Grows by one with each call; the same number twice is the same call again. */
  readonly seq: number;
  /** The latest epoch and state sequence that the node has heard of; 0 if none. */
  readonly seenEpoch: number;
  readonly seenSequence: number;
  /** The node is stopping, and holds nothing any more. */
  readonly leaving: boolean;
  readonly apps: readonly AppCall[];
}

/** Which level had not enough. */
export type Shortage = 'none' | 'app' | 'cluster';

export interface AppReply {
  readonly app: number;
  /** Tokens leased, of those wanted. */
  readonly granted: number;
  /** How many of each group of needs were granted. */
  readonly needs: readonly number[];
  /** 'none' if all that was asked for was granted. */
  readonly shortage: Shortage;
  /** When asking again may help; 0 if there is no shortage. */
  readonly retryAfterMicros: number;
  /** Whole tokens left that the app is sure of. */
  readonly remaining: number;
  /** Nodes that called for this app within one lease time. */
  readonly nodes: number;
  /** During overload: tokens per second that the app may have beyond its guarantee. Else 0. */
  readonly share: number;
}

export interface QuotaReply {
  readonly epoch: number;
  readonly sequence: number;
  /** The instant that the call was settled for, on the store's clock. */
  readonly nowMicros: number;
  readonly overloaded: boolean;
  readonly nodes: number;
  /** The most that this node may hold of all apps together, in tokens. */
  readonly leaseCap: number;
  /** Of the limits that the call was settled under. */
  readonly revision: number;
  /** How long the lease lasts without another call. */
  readonly leaseTtlMicros: number;
  /** Only of apps that the store has limits for. */
  readonly apps: readonly AppReply[];
}
