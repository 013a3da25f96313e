"""The HTTP API: routes, schemas, who may call them, and pages."""
