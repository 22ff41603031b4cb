"""Alembic's entry: runs on the connection that `store.migrate` hands over, never on one of its own.

Without one it writes the SQL of the revisions into the buffer it is given; that is how PostgreSQL is
migrated, whose driver SQLAlchemy could only use with another dependency.
"""

from alembic import context

given = context.config.attributes
if "connection" in given:
    context.configure(connection=given["connection"], transactional_ddl=True, transaction_per_migration=False)
else:
    context.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},  # or every % would be doubled
        output_buffer=given["script"],
        as_sql=True,
        transactional_ddl=False,  # the transaction is the caller's
    )
with context.begin_transaction():
    context.run_migrations()
