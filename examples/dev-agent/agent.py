"""Reviews or outlines Python code without a model: parses it, and calls a tool for each kind of finding."""

import ast
import json

RISKY = ("eval", "exec", "compile", "__import__")


def answer(case):
    task, _, code = case["input"].partition(":\n")
    calls = []

    def called(name, function, *given):
        result = function(*given)
        calls.append({"name": name, "arguments": {"characters": len(code)}, "result": result})
        return result

    if task not in ("review", "outline"):
        return made("I can review code or outline it; write `review:` or `outline:` before it.", calls)
    parsed = called("parse_code", parse_code, code)
    if isinstance(parsed, str):
        return made(parsed, calls)
    tree = ast.parse(code)
    if task == "outline":
        return made(json.dumps(called("list_names", list_names, tree)), calls)
    found = called("find_unused_imports", find_unused_imports, tree) + called(
        "find_risky_calls", find_risky_calls, tree
    )
    return made("\n".join(found) or "No findings.", calls)


def made(text, calls):
    """No model is called: what is not used costs nothing, and that is known."""
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cost_usd": 0.0}
    return {"output": text, "tool_calls": calls, "llm_calls": [], "handoffs": [], "usage": usage}


def parse_code(code):
    """The number of statements, or the error as a text."""
    try:
        return len(ast.parse(code).body)
    except SyntaxError as error:
        return f"syntax error on line {error.lineno}: {error.msg}"


def find_unused_imports(tree):
    imported = {
        (name.asname or name.name).partition(".")[0]: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return [f"`{name}` is imported and not used, line {line}" for name, line in imported.items() if name not in used]


def find_risky_calls(tree):
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"`except` catches everything, line {node.lineno}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RISKY:
            found.append(f"`{node.func.id}` runs a text as code, line {node.lineno}")
    return found


def list_names(tree):
    walked = list(ast.walk(tree))
    return {
        "classes": [node.name for node in walked if isinstance(node, ast.ClassDef)],
        "functions": [node.name for node in walked if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))],
    }
