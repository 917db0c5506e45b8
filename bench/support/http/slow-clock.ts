/**
 * Slows the clocks of this process down. A server that is itself so much slower then has as many requests between two
 * ticks of a clock as it has at full speed.
 */
export function slowClock(times: number): void {
  const epoch = Date.now();
  const { setTimeout, setInterval } = globalThis;
  const now = performance.now.bind(performance);
  const began = now();
  performance.now = () => began + (now() - began) / times;
  Date.now = () => epoch + (now() - began) / times;
  Object.assign(globalThis, {
    setTimeout: (task: () => void, ms = 0, ...args: []) => setTimeout(task, ms * times, ...args),
    setInterval: (task: () => void, ms = 0, ...args: []) => setInterval(task, ms * times, ...args),
  });
}
