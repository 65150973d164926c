-- `log --agent` and `log --operation` read the newest entries of their kind and no others.
CREATE INDEX entries_by_agent ON entries (agent) WHERE agent != x'';
CREATE INDEX entries_by_operation ON entries (operation);
