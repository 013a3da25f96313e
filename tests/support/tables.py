"""Tables of a new SQLite database, copied from a file that was migrated once.

Migrations take longer than most tests; those of ``tests/service/db`` run them.
"""

import shutil
from pathlib import Path

from counsel.service.db import engine as engines
from counsel.service.settings import ServiceSettings

MIGRATE = engines._migrate


def copying(template):
    """Return a migration that fills an empty SQLite file from ``template``, which it makes first.

    Any other database is migrated.
    """

    def migrate(address, settings):
        path = Path(address.database or "")
        if address.get_backend_name() != "sqlite" or not path.is_file() or path.stat().st_size:
            MIGRATE(address, settings)
            return
        if not template.exists():
            MIGRATE(engines.address_of(str(template)), ServiceSettings())
        shutil.copyfile(template, path)

    return migrate
