"""A parent built on the Python SDK.

flow.py smoke SERVER    lists the tools and makes a failing call: needs no session
flow.py flow SERVER     spawn -> wait -> answer -> read -> kill with the demo agent
"""
import asyncio
import os
import sys

from mcp import Client, StdioServerParameters


def structured(result):
    content = getattr(result, "structured_content", None)
    return content if content is not None else result.structuredContent


def failed(result):
    return bool(getattr(result, "is_error", None) or getattr(result, "isError", None))


def text(result):
    return result.content[0].text


async def smoke(client):
    names = sorted(tool.name for tool in (await client.list_tools()).tools)
    assert len(names) == 12 and "wait_sessions" in names, names
    result = await client.call_tool("wait_sessions", {"timeout_s": -1})
    assert failed(result) and structured(result)["kind"] == "invalid_argument", result
    result = await client.call_tool("doctor", {})
    assert not failed(result) and isinstance(structured(result)["checks"], list), result
    assert any(prompt.name == "delegate" for prompt in (await client.list_prompts()).prompts)


async def good(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not failed(result), f"{tool}: {text(result)}"
    return structured(result) if tool != "read_session" else text(result)


async def wait_for(client, name, cursor, want):
    """Waits until `want` is true of the session; the session and the cursor."""
    for _ in range(20):
        answer = await good(client, "wait_sessions", sessions=[name], since=cursor, timeout_s=15)
        cursor = answer["cursor"]
        for session in answer["sessions"]:
            if session["name"] == name and want(session):
                return session, cursor
    raise AssertionError(f"never came true: {answer}")


async def flow(client):
    spawned = await good(
        client, "spawn_session", agent="demo", name="parent-py", prompt="!permission Bash rm -rf build", cwd=os.getcwd()
    )
    name, cursor = spawned["session"]["name"], spawned["cursor"]
    asking, cursor = await wait_for(client, name, cursor, lambda s: s["state"] == "awaiting_permission")
    prompt = asking["prompt"]
    assert "rm -rf build" in (prompt.get("command") or prompt.get("body", "")), prompt
    refused = await client.call_tool("send_input", {"session": name, "text": "yes"})
    assert not failed(refused) and structured(refused)["delivered"] == "refused", refused
    answered = await good(client, "answer_prompt", session=name, choice="allow_once", prompt_id=prompt["id"])
    _, cursor = await wait_for(client, name, answered["cursor"], lambda s: s["state"] == "ready")
    said = await good(client, "read_session", session=name)
    assert said.splitlines()[-1].startswith("cursor="), said
    ended = await good(client, "kill_session", session=name)
    assert ended["sessions"][0]["name"] == name, ended
    again = await good(client, "kill_session", session=name)
    assert "next" in again, again


async def main():
    mode, server = sys.argv[1], sys.argv[2]
    parameters = StdioServerParameters(command=server, env=dict(os.environ))
    async with Client(parameters) as client:
        assert client.instructions and "wait_sessions" in client.instructions
        await {"smoke": smoke, "flow": flow}[mode](client)
    print(f"{mode}: fine")


asyncio.run(main())
