/**
 * The names of an application's policies, for completion and checks wherever code names one. Nothing is checked until an
 * application declares them, once:
 *
 *     export const policies = { search: { rate: '10/min' } } satisfies Record<string, RoutePolicy>;
 *     type Declared = typeof policies;
 *     declare module 'nestjs-weir' { interface RateLimitPolicies extends Declared {} }
 */
// oxlint-disable-next-line typescript/no-empty-object-type -- Applications add the members.
export interface RateLimitPolicies {}

/** The name of a policy: one that `RateLimitPolicies` declares, or any where nothing is declared. */
export type PolicyName = keyof RateLimitPolicies extends never
  ? string
  : Extract<keyof RateLimitPolicies, string>;

/** Something for each of several policies, by names that `RateLimitPolicies` declares, or by any where nothing is declared. */
export type ByPolicyName<T> = keyof RateLimitPolicies extends never
  ? Record<string, T>
  : Partial<Record<PolicyName, T>>;
