// Loads a plugin as opencode does, and calls its hooks as the lines on stdin say.
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const [plugin, parents, servers, directory] = process.argv.slice(2)
const { Pegboard } = await import(pathToFileURL(plugin))
const client = {
  session: { get: async ({ path: { id } }) => ({ data: { id, parentID: JSON.parse(parents)[id] } }) },
  tool: { ids: async () => ({ data: ["apply_patch", "bash", "read", "write"] }) },
}
const hooks = await Pegboard({ client, directory })
await hooks.config({ mcp: JSON.parse(servers) })
for await (const line of createInterface({ input: process.stdin })) {
  const { number, hook, given } = JSON.parse(line)
  const write = (error) => console.log(JSON.stringify({ number, given, error }))
  hooks[hook](...given).then(() => write(""), ({ message }) => write(message))
}
await hooks.dispose()
