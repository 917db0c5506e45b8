export type PathSegment = string | number;

const PLAIN_NAME = /^[A-Za-z_$][\w$-]*$/;

/** `apps.checkout.burst`, `steps[2]`; a name with dots in it stands in brackets. */
export function pathText(segments: readonly PathSegment[]): string {
  let text = '';
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (!PLAIN_NAME.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === '' ? segment : `.${segment}`;
  }
  return text;
}
