"""The programs that run agents: what each of them does with a server like ours."""
