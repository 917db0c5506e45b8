import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow, writeStartScript } from './start-script.mjs';
import { ensureTool } from './tool.mjs';

/** Where Debian keeps servers; not everybody's PATH goes there. */
const SERVERS = ['/usr/sbin', '/usr/local/sbin'];

/** The message brokers and the database of the tests, as environment variables. */
export const ensureBrokers = () => ({
  NATS_SERVER_BIN: ensureNats(),
  MOSQUITTO_BIN: ensureMosquitto(),
  RABBITMQ_SERVER_BIN: ensureRabbitmq(),
  KCAT_BIN: ensureKcat(),
  MARIADBD_BIN: ensureMariadb(),
});

const ensureNats = () =>
  ensureTool({
    name: 'nats-server',
    variable: 'NATS_SERVER_BIN',
    programs: ['nats-server'],
    places: SERVERS,
    versionPattern: /nats-server/,
    packages: [['nats-server']],
    advice: 'install it (apt-get install nats-server, brew install nats-server)',
    wrap: (tree, script) =>
      writeStartScript(tree, script, 'exec "$here/root/usr/sbin/nats-server" "$@"'),
  });

const ensureMosquitto = () =>
  ensureTool({
    name: 'mosquitto',
    variable: 'MOSQUITTO_BIN',
    programs: ['mosquitto'],
    places: SERVERS,
    // It has no --version, and its help ends with a status of its own.
    works: (path) => /^mosquitto version/.test(outputOf(path, ['-h'])),
    packages: [['mosquitto']],
    advice: 'install it (apt-get install mosquitto, brew install mosquitto)',
    wrap: (tree, script) =>
      writeStartScript(tree, script, 'exec "$here/root/usr/sbin/mosquitto" "$@"'),
  });

const ensureRabbitmq = () =>
  ensureTool({
    name: 'rabbitmq-server',
    variable: 'RABBITMQ_SERVER_BIN',
    programs: ['rabbitmq-server'],
    places: ['/usr/lib/rabbitmq/bin', ...SERVERS],
    works: isRabbitmq,
    packages: [['rabbitmq-server']],
    advice: 'install it (apt-get install rabbitmq-server, brew install rabbitmq)',
    wrap(tree, script) {
      const files = filesBelow(tree);
      const server = files.find((file) =>
        /\/rabbitmq_server-[^/]+\/sbin\/rabbitmq-server$/.test(file),
      );
      const runtime = files.find((file) => file.endsWith('/bin/erlexec'))?.replace('/erlexec', '');
      // Debian's `erl` knows one place where it may lie, and this is another.
      const environment = [
        'export ROOTDIR="$here/root/usr/lib/erlang" EMU=beam PROGNAME=erl',
        `export BINDIR="$here/${runtime}"`,
        'PATH="$here:$PATH"',
      ];
      writeStartScript(tree, join(tree, 'erl'), ...environment, 'exec "$BINDIR/erlexec" "$@"');
      writeStartScript(tree, join(tree, 'epmd'), ...environment, 'exec "$BINDIR/epmd" "$@"');
      writeStartScript(tree, script, ...environment, `exec "$here/${server}" "$@"`);
    },
  });

/** A client of Kafka that can be a small Kafka itself: librdkafka's mock cluster, which speaks its protocol on TCP. */
const ensureKcat = () =>
  ensureTool({
    name: 'kcat',
    variable: 'KCAT_BIN',
    programs: ['kcat', 'kafkacat'],
    // It has -V in place of --version.
    works: (path) => /librdkafka/.test(outputOf(path, ['-V'])),
    packages: [['kcat']],
    advice: 'install it (apt-get install kcat, brew install kcat)',
    wrap: (tree, script) => writeStartScript(tree, script, 'exec "$here/root/usr/bin/kcat" "$@"'),
  });

const ensureMariadb = () =>
  ensureTool({
    name: 'mariadbd',
    variable: 'MARIADBD_BIN',
    programs: ['mariadbd'],
    places: SERVERS,
    versionPattern: /MariaDB/,
    packages: [['mariadb-server-core']],
    advice: 'install it (apt-get install mariadb-server-core, brew install mariadb)',
    wrap: (tree, script) =>
      // Its messages lie beside it, and not where it was built to look for them.
      writeStartScript(
        tree,
        script,
        'exec "$here/root/usr/sbin/mariadbd" "$@" --basedir="$here/root/usr" --lc-messages-dir="$here/root/usr/share/mysql"',
      ),
  });

/**
 * Asking it for its version would start it. Debian's own script changes to another user first; the
 * one that it calls in the end is what is wanted.
 */
function isRabbitmq(path) {
  const script = existsSync(path) ? readFileSync(path, 'utf8') : '';
  if (!/rabbitmq-env|rabbitmq_server-/.test(script)) return false;
  const PATH = `${join(path, '..')}:${process.env.PATH}`;
  const args = ['-noinput', '-boot', 'no_dot_erlang', '-eval', 'io:put_chars("erlang"), halt().'];
  return outputOf('erl', args, { PATH }).startsWith('erlang');
}

const outputOf = (program, args, env = {}) =>
  spawnSync(program, args, {
    encoding: 'utf8',
    timeout: 10_000,
    env: { ...process.env, ...env },
  }).stdout ?? '';
