"""Tools for agents over the Model Context Protocol: `insight-trace mcp` (docs/agents.md).

`tools` has what they do, as functions of typed requests; `worker` runs them in a process of its own, confined to one
folder (`root`); `server` speaks the protocol and is the only module that needs the SDK.
"""
