"""What the guard of `surehold run` asks about, where no person can be asked: then it is refused."""

import subprocess

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint, without_folder_times
from spec.marks import requirement
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


@requirement("run:guard:refuses")
@pytest.mark.parametrize(
    "script",
    [
        "rm .bashrc",
        "mv .bashrc other",
        "ln .bashrc other && echo more >> other",
        "rm -r .git",
        "mv .git/hooks .git/aside",
        "rm -r .git/hooks; ln -s ../sub .git/hooks",
        "mkdir .git/worktrees; echo '[core] fsmonitor = x' > .git/config.worktree",
    ],
)
def test_what_programs_run_is_not_removed_exchanged_or_given_another_name_unasked(desk: RunDesk, script: str) -> None:
    (desk.root / ".bashrc").write_text("as it was\n")
    (desk.root / ".git/hooks").mkdir(parents=True)
    (desk.root / ".git/hooks/pre-commit").write_text("true\n")
    before = take_fingerprint(desk.root)

    command = [*desk.words("--guard", "100"), "sh", "-c", script]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, start_new_session=True, check=False)

    assert b"was not allowed to change a protected file" in done.stderr
    after = take_fingerprint(desk.root)
    after.pop(".git/worktrees", None)
    assert without_folder_times(after) == without_folder_times(before)


@requirement("run:guard:refuses")
def test_git_goes_on_with_its_own_record_of_its_work(desk: RunDesk) -> None:
    git = "git -c user.name=n -c user.email=e"
    subprocess.run(f"git init -q . && git add . && {git} commit -qm one", shell=True, cwd=desk.root, check=True)

    script = f"rm sub/b.txt; git branch hooks/config; git branch hooks2; {git} commit -qam two; git gc -q"
    command = [*desk.words("--guard", "100"), "sh", "-c", script]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, start_new_session=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
