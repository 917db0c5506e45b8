import { fileURLToPath } from 'node:url';
import { type Observable } from 'rxjs';

export interface Item {
  sku: string;
}

export interface Stock {
  sku: string;
  pieces: number;
}

export interface Summary {
  imported: number;
}

/** The service as its callers see it. */
export interface Inventory {
  get(item: Item): Observable<Stock>;
  watch(item: Item): Observable<Stock>;
  import(items: Observable<Item>): Observable<Summary>;
}

export const PACKAGE = 'inventory';

// From build/sample/03-grpc, where this file runs, to where the compiler leaves the proto file.
export const PROTO = fileURLToPath(
  new URL('../../../sample/03-grpc/inventory.proto', import.meta.url),
);
