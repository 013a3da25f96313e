"""The route of the audit trail."""

from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response

from counsel.service.api import schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.lanes import Lanes
from counsel.service.api.paging import PAGE, Limit, link_next
from counsel.service.core.audit import page_of_audit
from counsel.service.core.desk import Desk
from counsel.service.db.api_keys import LARGEST_ID, KeyHolder

AfterRow = Annotated[
    int, Query(ge=0, le=LARGEST_ID, description="The ``seq`` of the last row that you have.")
]


def add_audit_routes(app: FastAPI, desk: Desk, key_check: ApiKeyCheck, lanes: Lanes) -> None:
    """Add the route."""
    Admin = Annotated[KeyHolder, Depends(key_check("admin"))]

    @app.get("/v1/audit")
    @lanes.reading
    def list_audit(
        request: Request,
        response: Response,
        holder: Admin,
        limit: Limit = PAGE,
        after: AfterRow = 0,
    ) -> list[schemas.AuditRow]:
        """List who changed what, oldest first; ``Link`` has the next page."""
        with desk.reading.connect() as connection:
            rows = page_of_audit(connection, holder.tenant, after, limit)
        link_next(request, response, [str(row["seq"]) for row in rows], limit)
        return [schemas.AuditRow.model_validate(row) for row in rows]
