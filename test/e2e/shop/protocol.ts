/** Orders to a process of the shop. */
export type ShopOrder =
  | { readonly order: 'open'; readonly url: string; readonly nodeId: string }
  /** How long its database, or its cache, takes from now on. */
  | { readonly order: 'slow'; readonly what: 'database' | 'cache'; readonly ms: number }
  | { readonly order: 'close' };

export type ShopReport =
  | { readonly report: 'opened'; readonly url: string }
  | { readonly report: 'slowed' }
  /** A line of the log, as an operator sees it. */
  | { readonly report: 'said'; readonly line: string }
  | { readonly report: 'closed' }
  | { readonly report: 'broken'; readonly reason: string };
