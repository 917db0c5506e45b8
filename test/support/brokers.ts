import { existsSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { BROKER_HOST as HOST, startBroker, type Broker } from './broker-process.js';
import { freePort } from './free-port.js';
import { spawnOwned } from './processes.js';

export const startNats = (): Promise<Broker> =>
  startBroker({
    variable: 'NATS_SERVER_BIN',
    readyText: /Server is ready/,
    args: (port) => ['-a', HOST, '-p', String(port)],
  });

export const startMosquitto = (): Promise<Broker> =>
  startBroker({
    variable: 'MOSQUITTO_BIN',
    readyText: /version \S+ running/,
    args: (port, dir) => {
      const file = join(dir, 'mosquitto.conf');
      writeFileSync(file, `listener ${port} ${HOST}\nallow_anonymous true\npersistence false\n`);
      return ['-c', file, '-v'];
    },
  });

/**
 * Kafka as far as librdkafka's tests need it: topics that come by being named, groups, offsets. A consumer of a
 * topic of its own keeps it running; what it writes about the cluster tells the port.
 */
export const startKafka = (): Promise<Broker> =>
  startBroker({
    variable: 'KCAT_BIN',
    readyText: /bootstrap\.servers=127\.0\.0\.1:(\d+)/,
    args: () => ['-C', '-t', 'warm', '-b', 'none:1', '-X', 'test.mock.num.brokers=1', '-d', 'mock'],
  });

/** A database without tables of its own: anybody may log in, and it is there at once. */
export const startMariadb = (): Promise<Broker> =>
  startBroker({
    variable: 'MARIADBD_BIN',
    readyText: /ready for connections/,
    args: (port, dir) => [
      // Has to come first: nothing of this machine's own settings is wanted.
      '--no-defaults',
      `--datadir=${dir}`,
      `--bind-address=${HOST}`,
      `--port=${port}`,
      `--socket=${join(dir, 'socket')}`,
      `--pid-file=${join(dir, 'pid')}`,
      `--user=${userInfo().username}`,
      '--skip-grant-tables',
      '--skip-innodb',
      '--default-storage-engine=MyISAM',
    ],
  });

export async function startRabbitmq(): Promise<Broker> {
  const distributionPort = await freePort();
  const epmdPort = await freePort();
  return startBroker({
    variable: 'RABBITMQ_SERVER_BIN',
    readyText: /Server startup complete/,
    env: (port, dir) => {
      const plugins = join(dir, 'enabled_plugins');
      writeFileSync(plugins, '[].\n');
      writeFileSync(join(dir, 'rabbitmq.conf'), '');
      return {
        HOME: dir,
        RABBITMQ_NODENAME: 'weir@localhost',
        RABBITMQ_NODE_IP_ADDRESS: HOST,
        RABBITMQ_NODE_PORT: String(port),
        RABBITMQ_DIST_PORT: String(distributionPort),
        RABBITMQ_MNESIA_BASE: join(dir, 'mnesia'),
        RABBITMQ_LOG_BASE: join(dir, 'log'),
        RABBITMQ_LOGS: '-',
        RABBITMQ_ENABLED_PLUGINS_FILE: plugins,
        RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq.conf'),
        // A file that is not there: nothing of this machine's own settings is wanted.
        RABBITMQ_CONF_ENV_FILE: join(dir, 'none'),
        // The script becomes the server; otherwise it would start one that outlives it.
        RUNNING_UNDER_SYSTEMD: 'true',
        ERL_EPMD_PORT: String(epmdPort),
        ERL_EPMD_ADDRESS: HOST,
        ERL_CRASH_DUMP: '/dev/null',
      };
    },
    // The directory of Erlang's nodes. One that Erlang starts by itself would stay for ever.
    before: (program, env) => {
      const beside = join(dirname(program), 'epmd');
      const args = ['-port', String(epmdPort), '-address', HOST];
      return spawnOwned(existsSync(beside) ? beside : 'epmd', args, { env, stdio: 'ignore' });
    },
  });
}
