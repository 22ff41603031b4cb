-- Run once by the administrator, on an empty server: the role of the gateways and its database. The role is no
-- superuser, passes no row level security, makes no databases, and reaches no database but its own. `observatory_app`
-- is what each working connection becomes (docs/spec.md, Store); it is made here because the role may make none.
\set ON_ERROR_STOP on
\getenv password GATEWAY_PASSWORD
CREATE ROLE observatory_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
CREATE ROLE observatory LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
GRANT observatory_app TO observatory;
CREATE DATABASE observatory OWNER observatory;
REVOKE ALL ON DATABASE observatory FROM PUBLIC;
REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;
