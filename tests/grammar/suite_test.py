#!/usr/bin/env python3
"""Tries schemas on the grammar: those of the JSON Schema Test Suite, and the project's own. Each is refused by name, or honoured: then the grammar has
none of the values that the schema forbids, and what is drawn from it obeys the schema, as an independent validator sees it.
Usage: suite_test.py PROGRAM [DRAWS], with the program that prints draws and how many there shall be of each schema."""
import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker, ValidationError, validators

HERE = Path(__file__).resolve().parent
# Keywords that only objects, arrays, strings, numbers have: without `type`, a value is one of those that a schema's keywords are about.
ABOUT = {
    "object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "propertyNames"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "string": {"pattern", "minLength", "maxLength", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}


def pattern(_, expression, value, __):
    """As ECMA-262 has it: letters and digits of ASCII, and `$` only at the end."""
    python = re.sub(r"(?<!\\)\$(?!\w)", r"\\Z", re.sub(r"\\c([A-Za-z])", lambda letter: f"\\x{ord(letter[1]) % 32:02x}", expression))
    if isinstance(value, str) and not re.search(python, value, re.ASCII):
        yield ValidationError(f"{value!r} has no {expression}")


VALIDATORS = {draft: validators.extend(draft, {"pattern": pattern}) for draft in (Draft7Validator, Draft202012Validator)}
FORMATS = FormatChecker(["date", "email", "ipv4", "ipv6", "uuid"])


def spelled(value):
    """As the grammar writes it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, dict):
        return {name: spelled(each) for name, each in value.items()}
    return [spelled(each) for each in value] if isinstance(value, list) else value


def text_of(value) -> str:
    return json.dumps(spelled(value), ensure_ascii=False, separators=(",", ":"))


def narrowed(schema, root=True):
    """The schema with what the grammar takes for granted (docs/protocol.md 3.8): the types that its keywords are about, and closed objects."""
    if not isinstance(schema, dict):
        return schema
    out = {}
    for name, value in schema.items():
        if name in ("properties", "patternProperties", "$defs", "definitions"):
            out[name] = {key: narrowed(each, False) for key, each in value.items()} if isinstance(value, dict) else value
        elif name in ("items", "additionalProperties"):
            out[name] = narrowed(value, False)
        elif name in ("prefixItems", "anyOf", "oneOf", "allOf"):
            out[name] = [narrowed(each, False) for each in value] if isinstance(value, list) else value
        else:
            out[name] = value
    about = [kind for kind, keywords in ABOUT.items() if keywords & schema.keys()]
    if about and not {"type", "enum", "const"} & schema.keys():
        out["type"] = about
    if (schema.get("properties") or schema.get("patternProperties")) and "additionalProperties" not in schema:
        out["additionalProperties"] = False
    return out


def random_schema(random, depth=0):
    """Keywords of all kinds, next to each other as well as within each other."""
    def inner():
        return random_schema(random, depth + 1)

    def names(most):
        return random.sample(["a", "b", "aa", "kind", "x_1", 'q"', "", "\u00e9", "\U0001f600z"], random.randint(0, most))

    def value():
        return random.choice(["a", "b", "\n", 0, 1, 2.5, -3, None, True, [1, "a"], {"a": 1}, {"kind": "b", "a": None}])

    def some(most):
        return [inner() for _ in range(random.randint(1, most))]

    number, count = lambda: random.choice([-20, -1, 0, 1, 3, 7.25, 0.1, 100, 1e6]), lambda: random.randint(0, 3)
    makers = {
        "type": lambda: random.choice(["object", "array", "string", "number", "integer", "boolean", "null", ["string", "null"], ["object", "integer"]]),
        "enum": lambda: [value() for _ in range(random.randint(1, 4))], "const": value,
        "minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number, "multipleOf": lambda: random.choice([1, 3, 10]),
        "minLength": count, "maxLength": count, "pattern": lambda: random.choice(["^a", "b$", "^[a-c]{2,4}$", "x|^y", "\\d", "^\\w*$", "^[^a]*$", "\u00e9"]),
        "properties": lambda: {name: inner() for name in names(3)}, "required": lambda: names(2), "additionalProperties": lambda: random.choice([False, True, inner()]),
        "patternProperties": lambda: {random.choice(["^a", "b", "_1$"]): inner()}, "minProperties": count, "maxProperties": count,
        "items": inner, "prefixItems": lambda: some(2), "minItems": count, "maxItems": count,
        "anyOf": lambda: some(3), "oneOf": lambda: some(2), "allOf": lambda: some(2), "$ref": lambda: random.choice(["#", "#/$defs/one", "#/$defs/two"]),
    }
    nested = ("properties", "additionalProperties", "patternProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf")
    if depth > 0 and random.random() < 0.05:
        return random.choice([True, False])
    keywords = random.sample([name for name in makers if depth < 3 or name not in nested], random.choice([1, 1, 2, 2, 3, 4]))
    return {name: makers[name]() for name in keywords if not (name == "$ref" and depth == 0)}


def random_cases(count):
    random = Random(count)
    for number in range(count):
        schema = random_schema(random)
        schema["$defs"] = {"one": random_schema(random, 1), "two": random_schema(random, 2)}
        yield {"file": "random", "about": str(number) + " " + json.dumps(schema), "schema": schema, "tests": []}


def wrong_value(schema, value):
    draft = VALIDATORS[validators.validator_for(schema, default=Draft202012Validator)]
    return next(draft(schema, format_checker=FORMATS).iter_errors(value), None)


def main() -> int:
    program, draws = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "20"
    cases = [json.loads(line) for name in ("draft2020-12", "ours") for line in (HERE / "suite" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    cases += random_cases(int(sys.argv[3]) if len(sys.argv) > 3 else 500)
    lines = ["\t".join([json.dumps(case["schema"]), draws] + [text_of(value) for value, _ in case["tests"]]) for case in cases]
    printed = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(printed) == len(cases)
    count = dict.fromkeys(("honoured", "refused", "allowed and written", "allowed but narrowed", "forbidden", "drawn"), 0)
    faults = []
    for case, line in zip(cases, printed):
        path, why, *rest = line.split("\t")
        where = f"{case['file']}: {case['about']}"
        if "refused" in case and path != case["refused"]:
            faults.append(f"{where}: not refused at {case['refused']} but {path}")
        if path != "good":
            count["refused"] += 1
            if not (path.startswith("schema") and why) or (case["file"] == "ours" and "refused" not in case):
                faults.append(f"{where}: refused at {path}: {why}")
            continue
        count["honoured"] += 1
        for (value, valid), written in zip(case["tests"], rest):
            if written == "1":
                count["allowed and written"] += valid
                if not valid:
                    faults.append(f"{where}: writes {text_of(value)}")
            elif not valid:
                count["forbidden"] += 1
            elif case["file"].startswith("optional/format/") or case["file"] != "ours" and (wrong_value(narrowed(case["schema"]), value) or is_spelled_otherwise(case["schema"], value)):
                count["allowed but narrowed"] += 1
            else:
                faults.append(f"{where}: does not write {text_of(value)}")
        for text in rest[len(case["tests"]):]:
            count["drawn"] += 1
            try:
                wrong = wrong_value(case["schema"], json.loads(text))
            except RecursionError:
                break  # the schema refers to itself where no value gets smaller
            except ValueError as error:
                wrong = error
            if wrong:
                faults.append(f"{where}: drew {text}: {getattr(wrong, 'message', wrong)}")
                break
    print(*faults, sep="\n")
    print(", ".join(f"{number} {name}" for name, number in count.items()))
    return 1 if faults or not count["drawn"] else 0


def is_spelled_otherwise(schema, value) -> bool:
    """Values of an `enum` are written as the schema has them: members in its order, numbers with its digits. Numbers have few digits."""
    literals = [schema["const"]] if isinstance(schema, dict) and "const" in schema else schema.get("enum", []) if isinstance(schema, dict) else []
    same = any(not wrong_value({"const": each}, value) and json.dumps(each) != text_of(value) for each in literals)
    return same or (isinstance(value, (int, float)) and abs(value) >= 1e15)


if __name__ == "__main__":
    sys.exit(main())
