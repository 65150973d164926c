"""What other programs do to the files of a workspace, recorded as changes of its history."""
