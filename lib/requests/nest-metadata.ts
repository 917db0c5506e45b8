export type Class = abstract new (...args: never[]) => unknown;

/** A function; its own type says nothing about how it is called. */
export type Handler = object & { readonly name: string };

/** A decorator of a class or a method, which both are objects that metadata can be put on. */
export function onClassOrMethod(apply: (target: object) => void): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    apply((descriptor?.value as object | undefined) ?? target);
  };
}
