import { VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { type ApplicationConfig } from '@nestjs/core';
import { type ServedPath } from '../limits/route-place.js';
import { type WarmUpEntry } from './degrade-options.js';

/** How an application puts its paths together. */
export type PathConfig = Pick<ApplicationConfig, 'getGlobalPrefix' | 'getVersioning'>;

const PARAM = /^:(\w+)$/;
/** Wildcards, groups and optional parts: what callers write there nobody can tell. */
const PATTERN = /[*:(){}[\]?+]/;

/**
 * The addresses that callers write for a request that none has made yet, in the usual spelling. A prefix may not be
 * that of all routes, so both are told; of an address that nobody asks for nothing is lost.
 */
export function addressesOf(
  paths: readonly ServedPath[],
  entry: WarmUpEntry,
  config: PathConfig | undefined,
): string[] {
  if (entry.body !== undefined) return [];
  const search = searchOf(entry.query ?? {});
  if (search === undefined) return [];
  const prefix = prefixOf(config);
  const patterns =
    entry.path === undefined
      ? paths.flatMap((path) => versioned(path, config))
      : [entry.path.replace(/ version .*$/, '')];
  return patterns.flatMap((pattern) => {
    const path = filled(pattern, entry.params ?? {});
    if (path === undefined) return [];
    const own = `${path}${search}`;
    return prefix === '' || entry.path !== undefined ? [own] : [own, `/${prefix}${own}`];
  });
}

/** The addresses that callers write for any of the paths, with and without the prefix; more than those where a part of a path is not known. */
export function patternOf(paths: readonly ServedPath[], config: PathConfig | undefined): RegExp {
  const sources = paths
    .flatMap((path) => versioned(path, config))
    .map((path) => path.replace(/\/$/, '').split('/').map(sourceOf).join('/'));
  const prefix = prefixOf(config).split('/').map(escaped).join('/');
  // None at all: nothing is like it.
  return new RegExp(
    `^(?:/${prefix})?(?:${sources.length > 0 ? sources.join('|') : '(?!)'})/?(?:\\?|$)`,
    'i',
  );
}

function sourceOf(segment: string): string {
  if (PARAM.test(segment)) return '[^/?]+';
  return PATTERN.test(segment) ? '.*' : escaped(segment);
}

const escaped = (text: string): string => text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');

const prefixOf = (config: PathConfig | undefined): string =>
  (config?.getGlobalPrefix() ?? '').replace(/^\/*|\/*$/g, '');

function versioned(served: ServedPath, config: PathConfig | undefined): string[] {
  const { path } = served;
  const versioning = config?.getVersioning();
  const version = served.version ?? versioning?.defaultVersion;
  if (version === undefined || versioning?.type !== VersioningType.URI) return [path];
  const { prefix = 'v' } = versioning;
  return [version]
    .flat()
    .map((one) =>
      one === VERSION_NEUTRAL ? path : `/${prefix === false ? '' : prefix}${String(one)}${path}`,
    );
}

/** Undefined where a part of it is not known. */
function filled(pattern: string, params: Readonly<Record<string, unknown>>): string | undefined {
  const segments: string[] = [];
  for (const segment of pattern.split('/')) {
    const [, name] = PARAM.exec(segment) ?? [];
    const value = name === undefined ? undefined : textOf(params[name]);
    if (name === undefined ? PATTERN.test(segment) : value === undefined) return undefined;
    segments.push(value ?? segment);
  }
  return segments.join('/');
}

function searchOf(query: Readonly<Record<string, unknown>>): string | undefined {
  const pairs: string[] = [];
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) {
      const text = textOf(value);
      if (text === undefined) return undefined;
      pairs.push(`${encodeURIComponent(name)}=${text}`);
    }
  }
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? encodeURIComponent(value)
    : undefined;
