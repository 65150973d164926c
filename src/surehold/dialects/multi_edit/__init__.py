"""The multi_edit family: multi_edit_text_file and its siblings, with the contract's results, codes and messages."""

from surehold.dialects.multi_edit.multi_edit_text_file import multi_edit_text_file
from surehold.dialects.multi_edit.text_file import edit_text_file, read_text_file, write_text_file

TOOLS = (read_text_file, write_text_file, edit_text_file, multi_edit_text_file)
