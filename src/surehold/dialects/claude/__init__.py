"""Read, Write, Edit, Glob, Grep, NotebookEdit: the tools that models already know."""

from surehold.dialects.claude.edit import edit
from surehold.dialects.claude.glob import glob
from surehold.dialects.claude.grep import grep
from surehold.dialects.claude.notebook_edit import notebook_edit
from surehold.dialects.claude.read import read
from surehold.dialects.claude.write import write

TOOLS = (read, write, edit, glob, grep, notebook_edit)
