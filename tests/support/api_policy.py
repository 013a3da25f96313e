"""The rules of docs/reference/api-policy.md: what may change between two OpenAPI documents.

What was answered is still answered, and what was accepted is still accepted. Each broken promise is
a sentence that names its place.
"""

LOWER, UPPER = ("minimum", "minLength", "minItems"), ("maximum", "maxLength", "maxItems")


def broken_promises(before, after):
    """Return a sentence for every promise of one document that another one breaks."""
    broken = []
    for path, methods in before["paths"].items():
        for method, old in methods.items():
            where = f"{method.upper()} {path}"
            new = after["paths"].get(path, {}).get(method)
            if new is None:
                broken.append(f"{where} was removed")
            else:
                broken += _of_operation(where, old, new, _Pair(before, after))
    return broken


class _Pair:
    """Two documents, and the schemas of them that were compared."""

    def __init__(self, before, after):
        self.before, self.after, self.compared = before, after, set()

    def is_new(self, direction, old, new):
        """Whether this is the first time that two references are compared in this direction."""
        names = (direction, old.get("$ref"), new.get("$ref"))
        is_new = None in names or names not in self.compared
        self.compared.add(names)
        return is_new


def _resolve(schema, document):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _of_operation(where, old, new, pair):
    if old["operationId"] != new["operationId"]:
        yield f"{where}: operationId was {old['operationId']}, now it is {new['operationId']}"
    if old.get("security") != new.get("security"):
        yield f"{where}: it needs another role"
    yield from _of_parameters(where, old, new, pair)
    for kind, content in old.get("requestBody", {}).get("content", {}).items():
        accepted = new.get("requestBody", {}).get("content", {})
        if kind not in accepted:
            yield f"{where}: a request of {kind} is no longer accepted"
        else:
            schemas = content["schema"], accepted[kind]["schema"]
            yield from _of_schema(f"{where}, request", *schemas, pair, "request")
    if "requestBody" in new and "requestBody" not in old:
        yield f"{where}: it needs a body now"
    for code, answer in old["responses"].items():
        if code not in new["responses"]:
            if code.startswith("2"):
                yield f"{where}: it no longer answers with {code}"
            continue
        for kind, content in answer.get("content", {}).items():
            answered = new["responses"][code].get("content", {})
            if kind not in answered:
                yield f"{where}: the answer {code} is no longer {kind}"
            elif "schema" in content:
                schemas = content["schema"], answered[kind].get("schema", {})
                yield from _of_schema(f"{where}, answer {code}", *schemas, pair, "answer")


def _of_parameters(where, old, new, pair):
    now = {
        (parameter["in"], parameter["name"]): parameter for parameter in new.get("parameters", ())
    }
    then = {
        (parameter["in"], parameter["name"]): parameter for parameter in old.get("parameters", ())
    }
    for key, parameter in then.items():
        place = f"{where}, parameter {key[1]}"
        if key not in now:
            yield f"{place} was removed"
        else:
            schemas = parameter["schema"], now[key]["schema"]
            yield from _of_schema(place, *schemas, pair, "request")
    for key, parameter in now.items():
        was_required = key in then and then[key].get("required", False)
        if parameter.get("required", False) and not was_required:
            yield f"{where}, parameter {key[1]} is required now"


def _of_schema(where, old, new, pair, direction):
    if not pair.is_new(direction, old, new):
        return
    olds, news = _options(old, pair.before), _options(new, pair.after)
    lost, gained = sorted(olds.keys() - news.keys()), sorted(news.keys() - olds.keys())
    if "anything" in (news if direction == "request" else olds):
        lost, gained = [], []
    if direction == "request" and lost:
        yield f"{where}: {' or '.join(lost)} is no longer accepted"
    if direction == "answer" and gained:
        yield f"{where}: it may be {' or '.join(gained)} now"
    for kind in olds.keys() & news.keys():
        yield from _of_option(where, olds[kind], news[kind], pair, direction)


def _options(schema, document):
    """Return the kinds of value that a schema allows, each with its schema."""
    schema = _resolve(schema, document)
    if "anyOf" in schema:
        inner = [_options(option, document) for option in schema["anyOf"]]
        return {kind: option for options in inner for kind, option in options.items()}
    kinds = schema.get("type", "anything")
    return dict.fromkeys([kinds] if isinstance(kinds, str) else kinds, schema)


def _of_option(where, old, new, pair, direction):
    yield from _of_values(where, old, new, direction)
    fields, now = old.get("properties", {}), new.get("properties", {})
    for name, field in fields.items():
        place = f"{where}, field {name}"
        if name not in now:
            yield f"{place} was removed"
        else:
            yield from _of_schema(place, field, now[name], pair, direction)
    needed, needed_now = set(old.get("required", ())), set(new.get("required", ()))
    if direction == "request":
        for name in sorted(needed_now - needed):
            yield f"{where}, field {name} is required now"
    else:
        for name in sorted((needed - needed_now) & now.keys()):
            yield f"{where}, field {name} may be missing now"
    for part in ("items", "additionalProperties"):
        if isinstance(old.get(part), dict) and isinstance(new.get(part), dict):
            yield from _of_schema(f"{where}, {part}", old[part], new[part], pair, direction)


def _of_values(where, old, new, direction):
    then, now = _values(old), _values(new)
    if direction == "request" and now is not None:
        for value in sorted(map(repr, (then or {"any other value"}) - now)):
            yield f"{where}: {value} is no longer accepted"
    if direction == "answer" and then is not None:
        for value in sorted(map(repr, (now or {"any other value"}) - then)):
            yield f"{where}: it may be {value} now"
    if direction == "request":
        for name in LOWER:
            if new.get(name, float("-inf")) > old.get(name, float("-inf")):
                yield f"{where}: {name} is {new[name]} now"
        for name in UPPER:
            if new.get(name, float("inf")) < old.get(name, float("inf")):
                yield f"{where}: {name} is {new[name]} now"


def _values(schema):
    if "const" in schema:
        return {schema["const"]}
    return set(schema["enum"]) if "enum" in schema else None
