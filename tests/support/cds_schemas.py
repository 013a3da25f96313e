"""The bodies of CDS Hooks 2.0 as JSON schemas, after the field tables of its specification.

https://cds-hooks.hl7.org/2.0/: what is REQUIRED there is required here; optional fields are never
null or empty; ``extension`` may be anywhere and holds an object.
"""

TEXT = {"type": "string", "minLength": 1}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
URL = {"type": "string", "format": "uri", "minLength": 1}
EXTENSION = {"type": "object", "minProperties": 1}


def fields(required, **optional):
    """Return the schema of an object without other fields than these and extensions."""
    properties = {**required, **optional, "extension": EXTENSION}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def several(items):
    return {"type": "array", "items": items, "minItems": 1}


CODING = fields({"code": TEXT, "system": TEXT}, display=TEXT)
SHOWN_CODING = fields({"code": TEXT, "system": TEXT, "display": TEXT})

DISCOVERY = fields(
    {
        "services": {
            "type": "array",
            "items": fields(
                {"hook": TEXT, "description": TEXT, "id": TEXT},
                title=TEXT,
                prefetch={"type": "object", "additionalProperties": TEXT, "minProperties": 1},
                usageRequirements=TEXT,
            ),
        }
    }
)

ACTION = fields(
    {"type": {"enum": ["create", "update", "delete"]}, "description": TEXT},
    resource={"type": "object"},
    resourceId=TEXT,
)

CARD = fields(
    {
        "summary": TEXT | {"maxLength": 139},
        "indicator": {"enum": ["info", "warning", "critical"]},
        "source": fields({"label": TEXT}, url=URL, icon=URL, topic=CODING),
    },
    uuid=UUID,
    detail=TEXT,
    suggestions=several(
        fields(
            {"label": TEXT}, uuid=UUID, isRecommended={"type": "boolean"}, actions=several(ACTION)
        )
    ),
    selectionBehavior={"enum": ["at-most-one", "any"]},
    overrideReasons=several(SHOWN_CODING),
    links=several(
        fields(
            {"label": TEXT, "url": URL, "type": {"enum": ["absolute", "smart"]}},
            appContext=TEXT,
            autolaunchable={"type": "boolean"},
        )
    ),
) | {"dependentRequired": {"suggestions": ["selectionBehavior"]}}

ANSWER = fields({"cards": {"type": "array", "items": CARD}}, systemActions=several(ACTION))

CALL = fields(
    {"hook": TEXT, "hookInstance": UUID, "context": {"type": "object", "minProperties": 1}},
    fhirServer=URL,
    fhirAuthorization=fields(
        {
            "access_token": TEXT,
            "token_type": {"const": "Bearer"},
            "expires_in": {"type": "integer"},
            "scope": TEXT,
            "subject": TEXT,
        },
        patient=TEXT,
    ),
    prefetch={"type": "object"},
) | {"dependentRequired": {"fhirAuthorization": ["fhirServer"]}}

FEEDBACK = fields(
    {
        "feedback": {
            "type": "array",
            "items": fields(
                {
                    "card": UUID,
                    "outcome": {"enum": ["accepted", "overridden"]},
                    "outcomeTimestamp": {"type": "string", "format": "date-time"},
                },
                acceptedSuggestions=several(fields({"id": UUID})),
                overrideReason=fields({}, reason=CODING, userComment=TEXT),
            )
            | {
                "if": {"properties": {"outcome": {"const": "accepted"}}},
                "then": {"required": ["acceptedSuggestions"]},
            },
        }
    }
)
