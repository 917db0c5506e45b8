/** Any error with these fields. Jest types its matchers `any`; this one is what it stands for. */
export function errorWith(fields: object): Error {
  return expect.objectContaining(fields) as Error;
}

/** An argument error that names the field and carries the value. */
export function refusal(field: string, value: unknown): Error {
  return errorWith({ code: 'INVALID_ARGUMENT', field, value });
}

/** An error about an option that does not exist: it names the option, and keeps its value back. */
export function unknownOption(field: string): Error {
  return errorWith({
    name: 'UnknownOptionError',
    code: 'UNKNOWN_OPTION',
    field,
    value: undefined,
  });
}
