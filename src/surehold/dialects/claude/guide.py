"""What a model should know about reading before writing, in full and in a third of the words."""

GUIDE = """\
Changing files with Read, Write, Edit and NotebookEdit:
- Read before you change. `Edit` wants the lines that it touches to have been shown in this conversation, `Write` the whole file.
  Pages of Read, rows of Grep, and the lines that a result or a refusal shows add up; your own changes keep counting.
- Copy `old_string` exactly from the file, without the `N→` in front of each line, with enough lines around it to stand once.
- `stale` means that somebody changed the file since you saw it. The refusal shows what changed, and that counts as reading it:
  look whether your change is still right, and send it again. `partially_read` shows or names what is missing.
- Notebooks (.ipynb) are changed cell by cell with `NotebookEdit`; Read shows the ids of the cells.
- Glob and Grep say what they did not look at. No hit is no proof where ignored or binary files were left out.
- Every refusal says what to do next; "Nothing was written." means just that. A person can take every change back."""

BRIEF = """\
Read before you change: Edit wants the lines that it touches shown in this conversation (Read, Grep, earlier answers), Write the
whole file. `stale`: somebody changed it; the refusal shows what, so look and send the call again. Notebooks: NotebookEdit."""
