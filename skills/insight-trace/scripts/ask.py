"""One call to a tool of `insight-trace mcp`, from a shell: for who has no client of the protocol at hand.

    python ask.py TOOL ['{"file": "kernel.cpp", …}'] [--root FOLDER] [--programs]

Prints the answer as JSON; without a tool: the tools and what they take. Exits 1 where the tool refuses.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool", nargs="?")
    parser.add_argument("arguments", nargs="?", type=json.loads, default={})
    parser.add_argument("--root", default=".")
    parser.add_argument("--programs", action="store_true")
    options = parser.parse_args()
    import anyio

    return anyio.run(ask, options)


async def ask(options: argparse.Namespace) -> int:
    from mcp import Client, StdioServerParameters, stdio_client

    words = [
        "-m",
        "insight_trace",
        "mcp",
        "--root",
        options.root,
        *(["--programs"] if options.programs else []),
    ]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        if options.tool is None:
            listed: Any = {tool.name: tool.description for tool in (await client.list_tools()).tools}
            print(json.dumps(listed, indent=1))
            return 0
        answer = await client.call_tool(options.tool, options.arguments)
    if answer.is_error:
        print(answer.content[0].text, file=sys.stderr)
        return 1
    print(json.dumps(answer.structured_content, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
