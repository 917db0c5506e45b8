/** Says what was measured, for whoever wants to see how near a figure is to its bound. */
export function note(figures: object): void {
  if (process.env.CHAOS_FIGURES === undefined) return;
  const { currentTestName } = expect.getState();
  process.stderr.write(`${currentTestName}: ${JSON.stringify(figures)}\n`);
}
