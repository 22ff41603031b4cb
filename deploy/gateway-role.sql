-- Run once by the administrator, on an empty server: the role of the gateways and its database. The role is no
-- superuser, does not bypass row level security, creates no databases, and reaches only its own. Each working connection
-- switches to `observatory_app` (docs/spec.md, Store); it is created here because the gateways' role cannot create roles.
\set ON_ERROR_STOP on
\getenv password GATEWAY_PASSWORD
CREATE ROLE observatory_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
CREATE ROLE observatory LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
GRANT observatory_app TO observatory;
CREATE DATABASE observatory OWNER observatory;
REVOKE ALL ON DATABASE observatory FROM PUBLIC;
REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;
