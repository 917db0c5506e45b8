import { type Reading } from './series-table.js';

/** A feature as the monitor sees it: its counts are read once a second, and nothing is told when they change. */
export interface Source {
  /** Fills in what has been counted since the start. */
  read(into: Reading): void;
}
