"""Every route of the service, with the role it asks for and a body it takes."""

MATRIX = [
    ("POST", "/v1/advisers", "admin"),
    ("GET", "/v1/advisers", "read"),
    ("POST", "/v1/advisers/{adviser}/episodes", "advise"),
    ("POST", "/v1/episodes/{episode}/advice", "advise"),
    ("POST", "/v1/outcomes", "advise"),
    ("POST", "/v1/episodes/{episode}/reported", "advise"),
    ("POST", "/v1/episodes/{episode}/end", "advise"),
    ("GET", "/v1/advisers/{adviser}/log", "read"),
    ("POST", "/v1/models", "admin"),
    ("GET", "/v1/advisers/{adviser}", "read"),
    ("PATCH", "/v1/advisers/{adviser}", "admin"),
    ("DELETE", "/v1/advisers/{adviser}", "admin"),
    ("POST", "/v1/advisers/{adviser}/archive", "admin"),
    ("POST", "/v1/advisers/{adviser}/restore", "admin"),
    ("GET", "/v1/advisers/{adviser}/episodes", "read"),
    ("GET", "/v1/episodes/{episode}", "read"),
    ("GET", "/v1/models", "read"),
    ("GET", "/v1/models/{model}", "read"),
    ("GET", "/v1/models/{model}/file", "read"),
    ("PATCH", "/v1/models/{model}", "admin"),
    ("DELETE", "/v1/models/{model}", "admin"),
    ("GET", "/v1/advisers/{adviser}/summary", "read"),
    ("GET", "/v1/people", "read"),
    ("GET", "/v1/people/{person}", "read"),
    ("DELETE", "/v1/people/{person}", "admin"),
    ("POST", "/v1/erasures", "admin"),
    ("GET", "/v1/audit", "admin"),
    ("GET", "/v1/play", "advise"),
    ("POST", "/v1/play/games", "advise"),
    ("GET", "/v1/play/games/{game}", "advise"),
    ("POST", "/v1/play/games/{game}/moves", "advise"),
    ("GET", "/v1/play/players/{player}/log", "advise"),
    ("GET", "/cds-services", "advise"),
    ("POST", "/cds-services/{adviser}", "advise"),
    ("POST", "/cds-services/{adviser}/feedback", "advise"),
]


BODIES = {
    "/v1/advisers": {"name": "a", "source": "ward"},
    "/v1/advisers/{adviser}/episodes": {"person": "ann"},
    "/v1/episodes/{episode}/advice": {"step": 0, "state": "stable"},
    "/v1/outcomes": {"outcomes": []},
    "/v1/episodes/{episode}/reported": {"decisions": []},
    "/v1/episodes/{episode}/end": {},
    "/v1/advisers/{adviser}": {"mode": "shadow"},
    "/v1/models/{model}": {"name": "another"},
    "/v1/erasures": {"person": "ann"},
    "/v1/play/games": {"map": "budget", "budget": 1, "player": "me"},
    "/v1/play/games/{game}/moves": {"step": 0, "action": "Up"},
    "/cds-services/{adviser}": {
        "hook": "patient-view",
        "hookInstance": "d1577c69-dfbe-44ad-ba6d-3e05e953b2ea",
        "context": {"userId": "Practitioner/ann"},
        "extension": {"counsel": {"state": "stable"}},
    },
    "/cds-services/{adviser}/feedback": {"feedback": []},
}


DELETED = {"/v1/advisers/{adviser}": {"confirm": "alerts"}}
"""Bodies of requests that delete something."""
