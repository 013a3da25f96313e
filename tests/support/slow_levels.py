"""The level of every row of a log, one row after another, from the definitions; for tests only.

A log is a list of records. Nothing here knows an engine or a matrix.
"""


def sequences(rows, across):
    """The rows of each sequence in order: of an episode, or of all episodes of a person."""
    episodes = {}
    for row in rows:
        episodes.setdefault(row["episode"], []).append(row)
    for decisions in episodes.values():
        decisions.sort(key=lambda row: row["step"])
    if across == "episode":
        return list(episodes.values())
    whose = {}
    for name, decisions in episodes.items():
        begins = min(row["timestamp"] for row in decisions)
        person = decisions[0]["person"]
        key = ("episode", name) if person is None else ("person", person)
        whose.setdefault(key, []).append((begins, name, decisions))
    return [
        [row for _, _, decisions in sorted(own, key=lambda part: part[:2]) for row in decisions]
        for own in whose.values()
    ]


def was_seen(row):
    """Whether there was advice and the person saw it."""
    return row["advice"] is not None and row.get("seen") is not False


def levels(rows, kind, size, across, n_levels=None):
    """The level of each (episode, step)."""
    level_of = {}
    for sequence in sequences(rows, across):
        memory = {"pieces": 0, "since": size, "refusals": 0, "dose": 0.0}[kind]
        for row in sequence:
            shown = memory
            if kind == "dose":
                spacing = 1.0 / (1.0 - size) / (n_levels - 1)
                shown = min(int(memory / spacing + 0.5 + 1e-9), n_levels - 1)
            level_of[row["episode"], row["step"]] = shown
            memory = after(kind, size, memory, row)
    return level_of


def after(kind, size, memory, row):
    """What is remembered after a decision."""
    seen, matched = was_seen(row), row["action"] == row["advice"]
    if kind == "pieces":
        return min(memory + 1, size) if seen else memory
    if kind == "since":
        return 0 if seen else min(memory + 1, size)
    if kind == "refusals":
        return memory if not seen else 0 if matched else min(memory + 1, size)
    return size * memory + (1.0 if seen else 0.0)


def episodes_so_far(rows):
    """How many episodes the person had before that of each (episode, step)."""
    number_of = {}
    for sequence in sequences(rows, "person"):
        names = list(dict.fromkeys(row["episode"] for row in sequence))
        for row in sequence:
            number_of[row["episode"], row["step"]] = names.index(row["episode"])
    return number_of
