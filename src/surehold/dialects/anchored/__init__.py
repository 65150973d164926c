"""The anchored family: reading with hashes. Its `edit` follows."""

from surehold.dialects.shared.read_file import read_file
from surehold.dialects.shared.write_file import write_file

TOOLS = (read_file, write_file)
