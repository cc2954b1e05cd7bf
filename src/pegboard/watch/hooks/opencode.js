// Reports the tool calls of opencode 1 to Pegboard, which records them and decides on them.
// `pegboard adopt opencode --hooks` writes this file; with `--undo`, it removes it.
// The events have the form of Claude Code's hooks: https://code.claude.com/docs/en/hooks
import { spawn } from "node:child_process"

const COMMAND = []
const PASSES = 1 // exit code of a hook that failed while nothing may reject a call
const BLOCKED = 2
const RESOURCE_TOOLS = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"] // not in tool.ids()

export const Pegboard = async ({ client, directory }) => {
  const parents = new Map() // by session; undefined for one that has none
  const waiting = new Map() // calls on which Pegboard decides
  const calls = new Map() // calls that opencode makes
  const active = new Set() // sessions with calls in this turn
  let servers = []
  let ownTools
  let reported = Promise.resolve() // settled when Pegboard has every event until now

  const run = (event, onStart) =>
    new Promise((resolve) => {
      const hook = spawn(COMMAND[0], COMMAND.slice(1))
      let output = ""
      let error = ""
      hook.stdout.setEncoding("utf8").on("data", (chunk) => (output += chunk))
      hook.stderr.setEncoding("utf8").on("data", (chunk) => (error += chunk))
      hook.stdin.on("error", () => {}) // It may end before it has read everything.
      hook.on("error", ({ message }) => resolve({ error: message }))
      hook.on("close", (code) => resolve({ code, output, error }))
      hook.stdin.end(JSON.stringify(event))
      onStart?.(hook)
    })

  const report = (session, event) => {
    reported = reported.then(async () => run({ ...(await source(session)), ...event })).catch(() => {})
  }

  const parentOf = async (session) => {
    if (!parents.has(session)) parents.set(session, (await client.session.get({ path: { id: session } })).data?.parentID)
    return parents.get(session)
  }

  // A subagent has a session of its own. It belongs to the session of the user.
  const source = async (session) => {
    let root = session
    for (let parent; (parent = await parentOf(root)); ) root = parent
    return { session_id: root, cwd: directory, ...(root !== session && { agent_id: session }) }
  }

  const named = async (tool) => {
    ownTools ??= (await client.tool.ids()).data
    // A server of a project may have the beginning of one of opencode's own tools as its name.
    const isOwn = !ownTools || ownTools.includes(tool) || RESOURCE_TOOLS.includes(tool)
    const server = isOwn ? undefined : servers.find((name) => tool.startsWith(`${safe(name)}_`))
    if (!server) return { tool_name: tool }
    return { tool_name: `mcp__${safe(server)}__${tool.slice(safe(server).length + 1)}`, mcp_server: { name: server } }
  }

  return {
    config: async ({ mcp }) => {
      servers = Object.keys(mcp ?? {}).sort((one, other) => other.length - one.length)
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const id = `${sessionID} ${callID}`
      const wait = {}
      waiting.set(id, wait)
      active.add(sessionID)
      await reported
      const call = { ...(await source(sessionID)), ...(await named(tool)), tool_use_id: callID, tool_input: args }
      const hook = { ...call, hook_event_name: "PreToolUse" }
      const { code, output, error } = wait.isOver ? {} : await run(hook, (process) => (wait.process = process))
      waiting.delete(id)
      if (wait.isOver) throw new Error(ABORTED)
      if (code === BLOCKED) throw new Error(error.trim())
      if (code !== 0 && code !== PASSES) throw new Error(`Pegboard failed: ${error.trim()}. ${REPAIR}`)
      const decision = output ? JSON.parse(output).hookSpecificOutput : {}
      if (decision.permissionDecision === "deny") throw new Error(decision.permissionDecisionReason)
      if (decision.updatedInput) {
        for (const name of Object.keys(args)) delete args[name]
        Object.assign(args, decision.updatedInput)
      }
      calls.set(id, { ...call, note: decision.additionalContext, began: Date.now() })
    },

    // Only here, the result of an MCP server is complete, and can be changed.
    "tool.execute.after": async ({ sessionID, callID }, result) => {
      const call = calls.get(`${sessionID} ${callID}`)
      if (!call) return
      const { content, structuredContent, isError } = result
      if (Array.isArray(content)) call.tool_response = { content: [...content], structuredContent, isError }
      call.output = result.output
      if (!call.note) return
      if (Array.isArray(content)) content.push({ type: "text", text: call.note })
      else result.output += `\n\n${call.note}`
    },

    event: async ({ event: { type, properties } }) => {
      if (type === "session.created") parents.set(properties.info.id, properties.info.parentID)
      const isIdle = type === "session.idle" || (type === "session.status" && properties.status.type === "idle")
      if (isIdle && active.delete(properties.sessionID))
        report(properties.sessionID, { hook_event_name: "Stop" })
      if (type !== "message.part.updated" || properties.part.type !== "tool") return
      const { sessionID, callID, state } = properties.part
      if (state.status !== "completed" && state.status !== "error") return
      const id = `${sessionID} ${callID}`
      const wait = waiting.get(id) ?? {}
      wait.isOver = true // The user interrupted the call before Pegboard's decision.
      wait.process?.kill()
      const call = calls.get(id)
      if (calls.delete(id)) report(sessionID, { ...call, ...ended(call, state) })
    },

    dispose: () => reported,
  }
}

const ABORTED = "Tool execution aborted"
const KILLED = "User aborted the command\n</shell_metadata>"
const REPAIR = "Repeat `pegboard adopt opencode --hooks`, or remove the plugin."

const safe = (name) => name.replace(/[^a-zA-Z0-9_-]/g, "_")

const ended = (call, { status, error, metadata, attachments, time, ...state }) => {
  const about = { duration_ms: time.end - call.began }
  if (status === "error") {
    const isInterrupt = metadata?.interrupted === true || error === ABORTED
    return { ...about, hook_event_name: "PostToolUseFailure", error, is_interrupt: isInterrupt }
  }
  const output = call.output ?? state.output
  const exit = metadata?.exit // null for a command that was killed
  const text = exit ? `Exit code ${exit}\n${output}` : output
  const isInterrupt = exit === null && output.endsWith(KILLED)
  const content = [...(text ? [{ type: "text", text }] : []), ...(attachments ?? []).flatMap(image)]
  const response = call.tool_response ?? { content, isError: exit !== undefined && exit !== 0 }
  return { ...about, hook_event_name: "PostToolUse", tool_response: response, is_interrupt: isInterrupt }
}

const image = ({ mime, url }) => {
  const [, data] = /^data:image\/[^,]*;base64,(.*)$/s.exec(url ?? "") ?? []
  return data ? [{ type: "image", mimeType: mime, data }] : []
}
