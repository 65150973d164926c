"""The anchored family: read with hashes, edit by them."""

from surehold.dialects.anchored.edit import edit
from surehold.dialects.shared.read_file import read_file
from surehold.dialects.shared.write_file import write_file

TOOLS = (read_file, edit, write_file)
