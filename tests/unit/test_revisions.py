"""The list of revisions the program knows is the list of migration scripts."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from observatory.store.migrations.migrate import REVISIONS, SCRIPTS


def test_every_script_is_known_and_in_order() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    newest_first = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(newest_first)) == REVISIONS
