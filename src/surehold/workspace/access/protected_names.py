"""The files that programs run, or take commands from, without being told to: each name with the program that does.

1. A name protects a file, or everything in a directory, wherever it lies. `a/b` is `b` in any directory `a`.
2. A name belongs here when a program reads it by itself (on start, on `cd`, on opening a folder, before each command)
   and what it reads decides which code runs.
3. What projects are made of does not belong here, although programs run it: `package.json`, `Makefile`,
   `pyproject.toml`, `conftest.py`, `build.gradle`, `Dockerfile`, workflows of CI, configuration of linters and bundlers.
   Agents are asked to edit these all day, a question each time would be allowed unread, and a person starts these
   programs on purpose. Texts for models (`AGENTS.md`) and for git (`.gitignore`, `.gitattributes`) name no code.
"""

_NAMES_BY_PROGRAM = {
    "surehold": "surehold.toml .config/surehold",
    # version control
    "git": (
        ".git .gitconfig .gitconfig.* .gitmodules .config/git .githooks .git-hooks .git-templates .tigrc .config/tig"
    ),
    "git clients": (
        ".config/lazygit .lazygit.yml .config/gh .config/gh-dash .config/glab-cli .gh-dash.yml .arcrc .arcconfig "
        ".reviewboardrc .gclient .gclient_entries"
    ),
    "hg": ".hg .hgrc .config/hg",
    "jj": ".jj .jjconfig.toml .config/jj",
    "svn and other version control": (
        ".svn .subversion .bzr .bazaar .config/breezy .sl .repo .pijul _darcs .darcs .fossil-settings"
    ),
    "hooks of version control": (
        ".husky .huskyrc .huskyrc.* .pre-commit-config.yaml .pre-commit-config.yml prek.toml .cache/pre-commit "
        ".overcommit.yml lefthook.* .lefthook.* lefthook-local.* .lefthook-local.* .lefthook .lefthook-local "
        ".simple-git-hooks.* simple-git-hooks.* .lintstagedrc .lintstagedrc.* lint-staged.config.* captainhook.json "
        "grumphp.yml hk.pkl"
    ),
    # shells
    "sh": (
        ".profile .profile.* .shrc .shinit .login .logout .environment .config/environment.d .pam_environment "
        ".config/shell .alias .aliases .functions .exports"
    ),
    "bash": (
        ".bashrc .bashrc.* .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .bash_* .bash-it "
        ".oh-my-bash .config/bash .inputrc .inputrc.* .config/readline"
    ),
    "zsh": (
        ".zshrc .zshrc.* .zshenv .zshenv.* .zprofile .zprofile.* .zlogin .zlogin.* .zlogout .zlogout.* .zsh .zsh.d "
        ".zsh_* .zim .zimrc .zpreztorc .p10k.zsh .oh-my-zsh .antigenrc .config/zsh .zinit .zplug .zgen .zgenom "
        ".antidote .fzf.bash .fzf.zsh .fzfrc"
    ),
    "ksh and csh": ".kshrc .mkshrc .cshrc .tcshrc",
    "fish": ".config/fish .config/omf",
    "other shells": (
        ".config/nushell .config/elvish .elvish .xonshrc .config/xonsh .config/powershell profile.ps1 *_profile.ps1 "
        ".config/ion .yashrc"
    ),
    "prompts of shells": "starship.toml .config/oh-my-posh .config/thefuck .liquidpromptrc",
    "direnv": ".envrc .envrc.* .direnvrc .direnv .config/direnv .autoenv .autoenv.zsh .shadowenv.d .ondirrc",
    "mise, asdf and other tool managers": (
        "mise.toml mise.*.toml .mise.toml .mise.*.toml .mise .config/mise .config/mise.toml .rtx.toml .tool-versions "
        ".asdfrc .asdf .prototools .proto .rvmrc .nvm .pyenv .rbenv .sdkman .volta .hermit"
    ),
    "programs found by name": (
        ".local/bin .local/lib .local/share/systemd .local/share/bash-completion .local/share/zsh"
    ),
    # sessions of a desktop and of a terminal
    "systemd": ".config/systemd .config/user-tmpfiles.d",
    "cron": ".crontab spool/cron cron.d cron.hourly cron.daily cron.weekly cron.monthly",
    "launchd": "LaunchAgents LaunchDaemons",
    "the desktop": (
        ".config/autostart .config/autostart-scripts .config/user-dirs.dirs .local/share/applications "
        ".local/share/dbus-1 .local/share/gnome-shell .local/share/nautilus .local/share/kio .config/xfce4 "
        ".config/lxsession .config/mako .config/plasma-workspace .xprofile .xinitrc .xserverrc .xsession .xsessionrc "
        ".Xresources .Xdefaults .xbindkeysrc .sxhkdrc .config/sxhkd .i3 .config/i3 .config/sway .config/hypr "
        ".config/awesome .config/bspwm .config/qtile .config/waybar .config/polybar .xmonad .fvwm .fluxbox .conkyrc"
    ),
    "automation of the desktop": (
        ".hammerspoon .phoenix.js .config/phoenix .slate.js .yabairc .config/yabai .skhdrc .config/skhd "
        ".config/aerospace .aerospace.toml .config/karabiner .config/sketchybar "
        ".config/espanso .config/kmonad .config/xremap .config/autokey .config/ulauncher "
        ".config/albert .config/rofi .config/wofi .config/dunst .config/swaync .config/eww "
        ".config/river .config/niri .config/labwc .config/openbox .config/herbstluftwm .config/leftwm .config/spectrwm "
        ".spectrwm.conf .config/swayidle .config/wayfire.ini .config/devilspie2 .devilspie .config/kanshi"
    ),
    "tmux": (
        ".tmux.conf .tmux.conf.* .tmux .config/tmux .tmuxinator .tmuxinator.yml .config/tmuxinator .tmuxp .tmuxp.yaml "
        ".byobu"
    ),
    "screen": ".screenrc",
    "sound": ".config/pulse .config/pipewire .config/wireplumber",
    "environment modules": ".modulerc .modulerc.lua .lmodrc.lua .lmod.d",
    "GNU parallel": ".parallel",
    "terminals": (
        ".config/zellij .config/kitty .config/alacritty .alacritty.* .wezterm.lua .config/wezterm .config/ghostty "
        ".config/foot .config/rio .hyper.js .config/terminator"
    ),
    "file managers": ".config/ranger .config/lf .config/nnn .config/mc .config/yazi .config/vifm .vifm .config/broot",
    "pagers and viewers": ".lesskey .lesskey.src .lessfilter .mailcap .config/bat .config/lesskey .grc",
    "mail programs": (
        ".muttrc .mutt .neomuttrc .config/mutt .config/neomutt .procmailrc .mailrc .offlineimaprc .config/offlineimap "
        ".notmuch-config .config/notmuch .forward .fetchmailrc .msmtprc .mbsyncrc"
    ),
    # keys, networks and clouds
    "ssh": ".ssh",
    "gpg": ".gnupg",
    "network programs": ".netrc .curlrc .config/curlrc .wgetrc .aria2 .config/rclone .rclone.conf .s3cfg",
    "clouds and containers": (
        ".aws .kube .azure .config/gcloud .docker/config.json .docker/cli-plugins .config/docker .k9s .config/k9s "
        ".krew .actrc .config/act .config/containers .terraformrc terraform.rc .terraform .terraform.d .ansible.cfg "
        "ansible.cfg .ansible .config/helm .boto"
    ),
    "virtual machines": ".vagrant.d .lima .colima",
    "Nix and Guix": (
        ".config/nix nix.conf .config/nixpkgs .nixpkgs .nix-defexpr .nix-profile .config/home-manager .config/guix "
        ".guix-profile .devenv .flox"
    ),
    "media players": ".config/mpv .mpv .mplayer .config/cmus .ncmpcpp .config/ncmpcpp .config/mpd .mpdconf",
    "chat and web programs": (
        ".irssi .weechat .config/weechat .config/hexchat .config/qutebrowser .qutebrowser .config/newsboat .newsboat "
        ".config/aerc .config/vdirsyncer .w3m .elinks .config/elinks .surfingkeys.js .tridactylrc "
        ".config/tridactyl .mozilla .thunderbird .config/chromium .config/google-chrome .config/BraveSoftware"
    ),
    "tasks and timers": ".taskrc .task .timewarrior .config/task .config/timewarrior .watsonrc",
    "search programs": ".ripgreprc .config/ripgrep .ackrc .globalrc gtags.conf",
    # editors
    "vim": (
        ".vim .vimrc .vimrc.* _vimrc .gvimrc .exrc .nexrc .vsvimrc .lvimrc .local.vimrc .config/vim .vimspector.json "
        ".ycm_extra_conf.py .ideavimrc"
    ),
    "neovim": ".nvim .nvim.lua .nvimrc .config/nvim .local/share/nvim .config/lvim .lazy.lua .neoconf.json",
    "emacs": (
        ".emacs .emacs.el .emacs.elc .emacs.d .config/emacs .dir-locals.el .dir-locals-2.el .doom.d .config/doom "
        ".spacemacs .spacemacs.d .gnus .gnus.el"
    ),
    "helix": ".helix .config/helix",
    "zed": ".zed .config/zed",
    "VS Code": (
        ".vscode .vscode-server .vscode-insiders .vscode-oss .config/Code .config/VSCodium *.code-workspace "
        "omnisharp.json .omnisharp"
    ),
    "Visual Studio": ".vs *.csproj.user *.vcxproj.user",
    "JetBrains editors": ".idea .run *.run.xml .fleet .config/JetBrains",
    "Sublime Text": (
        "*.sublime-project *.sublime-workspace *.sublime-settings *.sublime-build *.sublime-commands "
        ".config/sublime-text"
    ),
    "other editors": (
        ".nanorc .config/nano .kakrc .config/kak .config/micro .kateproject .atom .nova .lapce .config/lapce "
        ".config/geany .joerc .config/joe .jed .jedrc .externalToolBuilders .tm_properties"
    ),
    "language servers": (
        "hie.yaml .merlin .bsp .metals .bloop .serena .lsp .luarc.json .luarc.jsonc .solargraph.yml .factorypath "
        ".phpactor.json .phpactor.yml"
    ),
    "development containers": (
        ".devcontainer .devcontainer.json .gitpod.yml .gitpod.Dockerfile .replit replit.nix .idx .codesandbox "
        ".stackblitzrc"
    ),
    # agents
    "MCP clients": (
        ".mcp.json mcp.json .mcp mcp_config.json mcp_settings.json cline_mcp_settings.json claude_desktop_config.json "
        "mcp-config.json mcp_servers.json mcp-servers.json mcpServers.json .docker/mcp"
    ),
    "Claude Code": ".claude .claude.json .claude-plugin .config/claude",
    "Codex": ".codex .agents/hooks.json .agents/mcp.json .agents/plugins",
    "Gemini CLI": ".gemini gemini-extension.json .qwen .iflow .antigravity .config/Antigravity",
    "Cursor": ".cursor .config/Cursor",
    "Copilot": ".copilot .config/github-copilot .github/copilot .github/hooks .github/agents .github/mcp.json",
    "Windsurf": ".windsurf .codeium .config/Windsurf",
    "Cline and Roo": ".cline .clinerules/hooks .roo .kilocode .kilo",
    "Continue": ".continue .continuerc.json",
    "Kiro and Amazon Q": ".kiro .amazonq",
    "Junie": ".junie",
    "opencode": ".opencode opencode.json opencode.jsonc .config/opencode",
    "aider": ".aider.conf.yml",
    "other agents": (
        ".amp .config/amp .augment .codebuff codebuff.json .cody codemcp.toml .deepagents .forge .gptme gptme.toml "
        ".config/gptme .grok .pochi .codebuddy .crush .crush.json crush.json .config/crush .devin .factory .goose "
        ".config/goose .openhands .pi .qodo .qoder .rovodev .tabnine .trae .vibe .void .warp .zencoder conductor.json "
        ".conductor .superset fastagent.config.yaml"
    ),
    # package managers and build tools
    "npm, yarn, pnpm and bun": (
        ".npmrc .pnpmfile.* .yarn .yarnrc .yarnrc.yml .config/yarn .config/pnpm .config/npm .pnp.* bunfig.toml "
        ".bunfig.toml .corepack.env"
    ),
    "pip and other Python installers": (
        ".pypirc pip.conf pip.ini .pip .config/pip .pydistutils.cfg pydistutils.cfg uv.toml .config/uv poetry.toml "
        ".config/pypoetry .config/pdm .config/hatch .pixi .condarc condarc .mambarc"
    ),
    "Maven": ".mvn .m2 maven-wrapper.properties .mavenrc",
    "Gradle": ".gradle gradle-wrapper.properties init.gradle init.gradle.kts",
    "other JVM tools": (
        ".sbt .sbtopts .jvmopts .mill-jvm-opts .ivy2 .ammonite .lein .clojure .config/clojure .boot .groovy .antrc "
        ".ant .jbang .jdbrc"
    ),
    "cargo": ".cargo .rustup rust-toolchain rust-toolchain.toml",
    "go": ".config/go go.env",
    "gem and bundler": ".gemrc .gem .config/gem .bundle",
    "composer and PHP": ".composer .config/composer .user.ini php.ini .psysh.php .config/psysh",
    "NuGet": "nuget.config .nuget",
    "MSBuild": "Directory.Build.rsp MSBuild.rsp",
    "Bazel and other build tools": (
        ".bazelrc .bazelrc.* *.bazelrc .bazelversion .bazeliskrc tools/bazel .buckconfig .buckconfig.* .pants.rc "
        ".pants.bootstrap .plzconfig .plzconfig.* .scons site_scons CMakeUserPresets.json .config/ccache ccache.conf "
        ".taskrc.yml .conan .conan2 .cocoapods .swiftpm .moon"
    ),
    "builders of packages": (
        ".rpmmacros .rpmrc .pbuilderrc .sbuildrc .devscripts .quiltrc .makepkg.conf .config/pacman .config/paru "
        ".abuild .spack"
    ),
    "Haskell": ".ghci .ghc .cabal .config/cabal .stack",
    "OCaml": ".ocamlinit .opam .config/utop",
    # start-up files of languages, debuggers and databases
    "Python": (
        "sitecustomize.py usercustomize.py pyvenv.cfg *.pth .pythonrc .pythonrc.py .pythonstartup* .ipython .config/ipython "
        "ipython_config.py .jupyter jupyter_*_config.* .ptpython .config/ptpython .config/bpython "
        ".local/share/jupyter matplotlibrc .matplotlib .config/matplotlib .pdbrc .pdbrc.py .config/pudb"
    ),
    "R": ".Rprofile .R .lintr .radian_profile .config/radian Rprofile.site .Renviron Renviron.site .RData",
    "Ruby": ".irbrc .config/irb .pryrc .config/pry .railsrc .rdebugrc .byebugrc",
    "Perl": ".perldb .re.pl .replyrc .proverc .cpan .cpanm",
    "Julia": ".julia .juliarc.jl startup.jl",
    "Lisp and Scheme": ".sbclrc .clisprc .clisprc.lisp .eclrc .ccl-init.lisp .abclrc .roswell .guile .racketrc",
    "Erlang and Elixir": ".erlang .iex.exs .hex .mix",
    "other languages": (
        ".luarocks .octaverc startup.m .maxima maxima-init.mac .gnuplot .sage .swiplrc .config/swi-prolog .coqrc "
        ".config/coq .isabelle .elan lean-toolchain .tclshrc .wishrc .scalarc .Mathematica .Wolfram"
    ),
    "gdb": ".gdbinit .gdbinit.* .gdbinit-* .gdbearlyinit *-gdb.py *-gdb.gdb *-gdb.scm .config/gdb",
    "lldb": ".lldbinit .lldbinit-*",
    "other debuggers": ".cgdb .radare2rc .rizinrc .config/rizin .valgrindrc .ddd",
    "clients of databases": (
        ".psqlrc .psqlrc-* .sqliterc .config/sqlite3 .usqlrc .my.cnf .mongorc.js .mongoshrc.js .duckdbrc .odbcinst.ini"
    ),
}

PROGRAM_BY_RULE = {
    f"**/{name}" if "/" in name else name: program
    for program, names in _NAMES_BY_PROGRAM.items()
    for name in names.split()
}
PROTECTED = tuple(PROGRAM_BY_RULE)
"""The same names as rules, in the syntax of all rules."""
