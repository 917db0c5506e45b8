import { type SourceFile } from './import-rules.js';
import { sourcesBelow } from './sources.js';
import { sharedTypeNames } from './type-names.js';

describe('the types of lib', () => {
  it('have a name of their own wherever they are exported', () => {
    expect(sharedTypeNames(sourcesBelow('lib'))).toEqual([]);
  });
});

describe('sharedTypeNames', () => {
  const file = (path: string, text: string): SourceFile => ({ path: `lib/${path}`, text });
  const two = (one: string, other: string): string[] =>
    sharedTypeNames([file('a/one.ts', one), file('b/two.tsx', other)]);

  it.each([
    ['interface Row {}', 'export interface Row {}'],
    ['export type Row = string;', 'export class Row {}'],
    ['export enum Row { A }', 'function f() { type Row = string; }'],
    ['export abstract class Row<T> {}', 'interface Row<T> {}'],
  ])('sees %s and %s', (one, other) => {
    expect(two(one, other)).toEqual(['Row: lib/a/one.ts, lib/b/two.tsx']);
  });

  it.each([
    ['interface Row {}', 'type Row = string;'],
    ['export interface Row {}', "export { type Row } from '../a/one.js';"],
    ['export interface Row {}', 'export const Row = 1;'],
    ['export interface Row {} export class Row {}', ''],
  ])('has nothing against %s and %s', (one, other) => {
    expect(two(one, other)).toEqual([]);
  });
});
