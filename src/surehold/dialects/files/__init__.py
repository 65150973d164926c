"""The files family: tools whose changes are gated by the sha256 of what the caller saw."""

from surehold.dialects.files.apply_patch import apply_patch
from surehold.dialects.files.edit_file import edit_file
from surehold.dialects.files.glob import glob
from surehold.dialects.files.list_directory import list_directory
from surehold.dialects.files.move_file import move_file
from surehold.dialects.files.search_files import search_files
from surehold.dialects.files.trash import delete_file, restore_file
from surehold.dialects.shared.read_file import read_file
from surehold.dialects.shared.write_file import create_file, write_file

TOOLS = (
    read_file,
    list_directory,
    search_files,
    glob,
    create_file,
    write_file,
    edit_file,
    delete_file,
    restore_file,
    move_file,
    apply_patch,
)
