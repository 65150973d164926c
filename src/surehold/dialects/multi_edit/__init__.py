"""The multi_edit family: multi_edit_text_file and its siblings, with the contract's results, codes and messages."""
