"""What Surehold remembers: the contract and the stores that fulfil it."""
