"""How the steps of one change reach this machine's disk: staged, published, undone or cleaned up, all or none."""
