import { spawn } from 'node:child_process';

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** Opens the dashboard that listens at that port of this machine; where that does not work, one line says so. */
export function openInBrowser(port: string): void {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const tell = (why: string): void => {
    console.log(`No browser        ${program} ${why}: open the address by hand`);
  };
  // In a group of its own: Ctrl-C here is not for the browser.
  const opener = spawn(program, [...args, `http://127.0.0.1:${port}/weir/`], {
    detached: true,
    stdio: 'ignore',
  });
  opener.unref();
  opener.once('error', ({ message }) => tell(`does not run (${message})`));
  opener.once('exit', (code) => code && tell(`ended with ${code}`));
}
