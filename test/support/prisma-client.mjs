// The client that `prisma generate` writes for this schema, as far as it runs: the types are in prisma-client.d.mts, and the graph that
// tells which values are parameters is empty. The generator itself brings 140 packages along, so it is not run here.
import { getPrismaClient } from '@prisma/client/runtime/client';

const SCHEMA = `
generator client {
  provider = "prisma-client"
}

datasource db {
  provider = "mysql"
}

model Order {
  id   Int    @id
  item String @db.VarChar(40)

  @@map("orders")
}
`;

const fields = [
  { name: 'id', kind: 'scalar', type: 'Int' },
  { name: 'item', kind: 'scalar', type: 'String' },
];

export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: '7.10.0',
  activeProvider: 'mysql',
  inlineSchema: SCHEMA,
  runtimeDataModel: { models: { Order: { dbName: 'orders', fields } }, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: 'AAAAAAAAAAA=' },
  compilerWasm: {
    getRuntime: () => import('@prisma/client/runtime/query_compiler_fast_bg.mysql.mjs'),
    getQueryCompilerWasmModule: async () => {
      const { wasm } =
        await import('@prisma/client/runtime/query_compiler_fast_bg.mysql.wasm-base64.mjs');
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
    },
    importName: './query_compiler_fast_bg.js',
  },
});
