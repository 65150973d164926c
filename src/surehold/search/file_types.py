"""File types by ripgrep's names, with their globs and common aliases."""

from difflib import get_close_matches

from surehold.errors import InvalidPattern

_CPP = ("*.[ChH]", "*.[ChH].in", "*.[ch]pp", "*.[ch]pp.in", "*.[ch]xx", "*.[ch]xx.in", "*.cc", "*.cc.in", "*.hh")
GLOBS: dict[str, tuple[str, ...]] = {
    "c": ("*.[chH]", "*.[chH].in", "*.cats"),
    "cpp": (*_CPP, "*.hh.in", "*.inl"),
    "cs": ("*.cs",),
    "css": ("*.css", "*.scss"),
    "dart": ("*.dart",),
    "docker": ("*Dockerfile*",),
    "elixir": ("*.eex", "*.ex", "*.exs", "*.heex", "*.leex", "*.livemd"),
    "go": ("*.go",),
    "haskell": ("*.c2hs", "*.cpphs", "*.hs", "*.hsc", "*.lhs"),
    "html": ("*.ejs", "*.htm", "*.html"),
    "java": ("*.java", "*.jsp", "*.jspx", "*.properties"),
    "js": ("*.cjs", "*.js", "*.jsx", "*.mjs", "*.vue"),
    "json": ("*.json", "*.sarif", "composer.lock"),
    "jupyter": ("*.ipynb", "*.jpynb"),
    "kotlin": ("*.kt", "*.kts"),
    "lua": ("*.lua",),
    "md": ("*.markdown", "*.md", "*.mdown", "*.mdwn", "*.mdx", "*.mkd", "*.mkdn"),
    "php": ("*.php", "*.php3", "*.php4", "*.php5", "*.php7", "*.php8", "*.pht", "*.phtml"),
    "py": ("*.py", "*.pyi"),
    "ruby": ("*.gemspec", "*.rake", "*.rb", "*.rbw", ".irbrc", "Gemfile", "Rakefile", "config.ru"),
    "rust": ("*.rs",),
    "scala": ("*.sbt", "*.scala"),
    "sh": (
        *("*.bash", "*.bashrc", "*.csh", "*.cshrc", "*.env", "*.ksh", "*.kshrc", "*.sh", "*.tcsh", "*.zsh"),
        *(".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc", ".env", ".kshrc", ".login", ".logout"),
        *(".profile", ".tcshrc", ".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc", "bash_login", "bash_logout"),
        *("bash_profile", "bashrc", "profile", "zlogin", "zlogout", "zprofile", "zshenv", "zshrc"),
    ),
    "sql": ("*.psql", "*.sql"),
    "svg": ("*.svg",),
    "swift": ("*.swift",),
    "toml": ("*.toml", "Cargo.lock"),
    "ts": ("*.cts", "*.mts", "*.ts", "*.tsx"),
    "txt": ("*.txt",),
    "xml": ("*.dtd", "*.rng", "*.sch", "*.xhtml", "*.xjb", "*.xml", "*.xml.dist", "*.xsd", "*.xsl", "*.xslt"),
    "yaml": ("*.yaml", "*.yml"),
    "zig": ("*.zig",),
}
ALIASES = {
    "bash": "sh",
    "c++": "cpp",
    "csharp": "cs",
    "dockerfile": "docker",
    "golang": "go",
    "htm": "html",
    "ipynb": "jupyter",
    "javascript": "js",
    "jsx": "js",
    "kt": "kotlin",
    "markdown": "md",
    "python": "py",
    "rb": "ruby",
    "rs": "rust",
    "shell": "sh",
    "tsx": "ts",
    "typescript": "ts",
    "yml": "yaml",
    "zsh": "sh",
}


def canonical_type(name: str) -> str:
    """Return ripgrep's name of a file type; a malformed name is refused."""
    if not name or not all(sign.isalnum() or sign in "+-_" for sign in name):
        raise unknown_type_error(name)
    return ALIASES.get(name, name)


def unknown_type_error(name: str) -> InvalidPattern:
    near = get_close_matches(name.lower().lstrip("."), (*GLOBS, *ALIASES), n=3, cutoff=0.6)
    names = " or ".join(f"`{each}`" for each in near)
    return InvalidPattern(
        f"Unknown file type `{name}`.",
        reason="unknown_type",
        action=f"Did you mean {names}? A glob such as `*.py` works too."
        if near
        else "Use a name such as py, js, rust or md, or give a glob instead.",
        type=name,
        near=near,
    )


def type_globs(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of these types; refuse one that only ripgrep knows."""
    known = [canonical_type(name) for name in names]
    if strange := [name for name in known if name not in GLOBS]:
        raise unknown_type_error(strange[0])
    return tuple(glob for name in known for glob in GLOBS[name])
