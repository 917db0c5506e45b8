/** A decorator of a class or a method, which both are objects that metadata can be put on. */
export function onClassOrMethod(apply: (target: object) => void): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    apply((descriptor?.value as object | undefined) ?? target);
  };
}
