"""TypeScript of the wire types, from schemas/openapi.json, for the windows in ui/ and the SDK in sdk-ts/.

`python tools/windows_types.py [--check]` writes ui/src/protocol/openapi.ts: one interface a schema, and three
maps from a route to what it answers and takes, by which the client in ui/src/api is typed; and
sdk-ts/src/protocol.ts: what an agent says and hears, and all that is made of. The document uses few words of
JSON Schema; one this does not know ends the run rather than becoming `unknown` in silence.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "schemas/openapi.json"
WINDOWS, SDK = ROOT / "ui/src/protocol/openapi.ts", ROOT / "sdk-ts/src/protocol.ts"
HEAD = "// Written by tools/windows_types.py from schemas/openapi.json; never edited by hand."
# What an agent says, asks and hears; whatever these are made of comes along.
OF_AGENTS = (
    "Accepted",
    "AckIds",
    "ActionConfirmationEnvelope",
    "AgentItem",
    "DecisionLog",
    "DecisionRequestEnvelope",
    "EndedSession",
    "InboxAnswer",
    "InboxItem",
    "NewAgent",
    "NewSessionThought",
    "NewThought",
    "NewThoughtSession",
    "HeartbeatBody",
    "RecordedThought",
    "Refused",
    "Rejected",
    "SealAnswer",
    "StartedSession",
)
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
NAME = re.compile(r"^[A-Za-z_$][\w$]*$")
Schema = dict[str, Any]


def spelled(schema: Schema) -> str:
    """One schema as a TypeScript type."""
    if "$ref" in schema:
        return _name(schema["$ref"].rsplit("/", 1)[1])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(spelled(one) for one in schema[word]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(spelled(schema | {"type": one}) for one in kind)
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(spelled(one) for one in schema['prefixItems'])}]"
        inner = spelled(schema.get("items") or {})
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object" or "properties" in schema:
        return _object(schema)
    if kind is None:
        return "unknown"
    return PLAIN[kind]


def _object(schema: Schema) -> str:
    members = schema.get("properties")
    if not members:
        inside = schema.get("additionalProperties")
        return f"Record<string, {spelled(inside) if isinstance(inside, dict) else 'unknown'}>"
    needed = set(schema.get("required", ()))
    lines = [
        f"  {name if NAME.match(name) else json.dumps(name)}{'' if name in needed else '?'}: {spelled(one)};"
        for name, one in members.items()
    ]
    return "{\n" + "\n".join(lines) + "\n}"


def _name(name: str) -> str:
    return re.sub(r"\W|_+$", "", name.replace("Page_", "PageOf"))


def _content(body: Schema | None) -> str | None:
    schema = (body or {}).get("content", {}).get("application/json", {}).get("schema")
    return None if schema is None else spelled(schema)


def written(document: Schema) -> str:
    lines = [HEAD, ""]
    for name, schema in document["components"]["schemas"].items():
        lines += [f"export type {_name(name)} = {spelled(schema)};", ""]
    answers, bodies, queries = [], [], []
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            route = json.dumps(f"{method.upper()} {path}")
            good = next((told["responses"][code] for code in sorted(told["responses"]) if code < "300"), None)
            answers.append(f"  {route}: {_content(good) or 'unknown'};")
            if (body := _content(told.get("requestBody"))) is not None:
                bodies.append(f"  {route}: {body};")
            asked = [one for one in told.get("parameters", ()) if one["in"] == "query"]
            if asked:
                members = "; ".join(f"{one['name']}?: {spelled(one['schema'])}" for one in asked)
                queries.append(f"  {route}: {{ {members} }};")
    for title, found in (("Answers", answers), ("Bodies", bodies), ("Queries", queries)):
        lines += [f"export interface {title} {{", *found, "}", ""]
    return "\n".join(lines)


def written_for_agents(document: Schema) -> str:
    """The types of `OF_AGENTS` and of all they name, in the document's order."""
    schemas, wanted, left = document["components"]["schemas"], set(), list(OF_AGENTS)
    while left:
        if (name := left.pop()) not in wanted:
            wanted.add(name)
            left += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schemas[name]))
    lines = [HEAD, ""]
    for name in (name for name in schemas if name in wanted):
        lines += [f"export type {_name(name)} = {spelled(schemas[name])};", ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    document = json.loads(SOURCE.read_text())
    texts = {WINDOWS: written(document), SDK: written_for_agents(document)}
    if "--check" in arguments:
        stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `make schemas`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
