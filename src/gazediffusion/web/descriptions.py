"""The description of the API: models and tasks in the OpenAPI schema, and a page that shows it.

The page is written here because the usual ones load their scripts from other servers.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from gazediffusion.storage import sha256_source

if TYPE_CHECKING:
    from gazediffusion.web.playground import Playground

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;
color-scheme:light dark}code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;
padding:.6rem;border:1px solid #8885;border-radius:.4rem}h2{margin-top:2.2rem;font-size:1.1rem}
dt{font-weight:600}dd{margin:0 0 .3rem 1.5rem}"""
DOCS_POLICY = f"default-src 'none'; style-src {sha256_source(_STYLE)}; frame-ancestors 'none'"
_BEARER = "HTTPBearer"


def add_names(app: FastAPI, play: Playground) -> None:
    """State models, tasks, limits and the token in the OpenAPI description."""
    describe = app.openapi
    served = play.models.served
    tasks = sorted({task for model in served.values() for task in model.about.tasks})
    most_s = max(model.about.max_seconds for model in served.values())
    most_hz = max(model.about.rate_hz for model in served.values())
    facts: dict[str, dict[str, Any]] = {
        "model": {"enum": [*served, None]},
        "task": {"enum": [*tasks, None]},
        "n": {"maximum": play.settings.limits.max_windows},
        "seconds": {"minimum": 1, "maximum": most_s},
        "rate_hz": {"minimum": 10, "maximum": most_hz},
    }
    if not any(model.about.has_losses for model in served.values()):
        facts["losses"] = {"enum": [False]}
    if not any(model.about.has_labels for model in served.values()):
        facts["labels"] = {"enum": [False]}
    if not any(model.about.is_steerable for model in served.values()):
        facts["at"] = {"maxItems": 0}
        facts |= {name: {"enum": [None]} for name in ("start", "scanpath", "targets")}

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = describe()
            for name, field in _fields(schema):
                field.update(facts.get(name, {}))
            schemes = {_BEARER: {"type": "http", "scheme": "bearer"}}
            schema["components"]["securitySchemes"] = schemes
            is_optional = play.settings.token is None
            schema["security"] = [{_BEARER: []}, *([{}] if is_optional else [])]
            schema["paths"]["/health"]["get"]["security"] = []
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]


def _fields(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every field of a request, with its schema."""
    bodies = [
        (name, field)
        for title, one in schema["components"]["schemas"].items()
        if title.startswith(("Generate", "Body")) and "Response" not in title
        for name, field in one["properties"].items()
    ]
    queries = [
        (one["name"], one["schema"])
        for methods in schema["paths"].values()
        for operation in methods.values()
        for one in operation.get("parameters", [])
    ]
    return bodies + queries


def docs_page(schema: dict[str, Any]) -> str:
    """The OpenAPI description as one plain page."""
    parts = [_operation(schema, path, method, one) for path, method, one in _operations(schema)]
    info = schema["info"]
    about = escape(info["description"]).replace("`", "")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{info["title"]} API'
        f'</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{info['title']} {info['version']}: HTTP API</h1>"
        f'<p>{about}</p><p>Machine-readable: <a href="openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}</body></html>"
    )


def _operations(schema: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, one)
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    ]


def _operation(schema: dict[str, Any], path: str, method: str, one: dict[str, Any]) -> str:
    inputs = {field["name"]: field for field in one.get("parameters", [])}
    for body in one.get("requestBody", {}).get("content", {}).values():
        title = (body["schema"].get("$ref") or body["schema"]["allOf"][0]["$ref"]).split("/")[-1]
        described = schema["components"]["schemas"][title]
        inputs |= described["properties"]
        for example in described.get("examples", []):
            one = {**one, "example": json.dumps(example)}
    listed = "".join(
        f"<dt><code>{escape(name)}</code></dt><dd>{escape(_words(field))}</dd>"
        for name, field in inputs.items()
    )
    responses = "".join(
        f"<dt>{status}</dt><dd>{escape(response['description'])}</dd>"
        for status, response in one["responses"].items()
    )
    example = f"<pre>{escape(one['example'])}</pre>" if "example" in one else ""
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(one['summary'])}. "
        f"{escape(one['description'])}</p>"
        + (f"<h3>Fields</h3><dl>{listed}</dl>{example}" if listed else "")
        + f"<h3>Responses</h3><dl>{responses}</dl>"
    )


def _words(field: dict[str, Any]) -> str:
    """A field: its description, its possible values and its default."""
    inner = field.get("schema", field)
    words = [str(field.get("description") or inner.get("description") or inner.get("title", ""))]
    if "enum" in inner:
        words.append("one of " + ", ".join(str(value) for value in inner["enum"] if value))
    if "maximum" in inner:
        words.append(f"{inner.get('minimum', 0)} to {inner['maximum']:g}")
    if inner.get("default") is not None:
        words.append(f"default {inner['default']}")
    return "; ".join(words)
