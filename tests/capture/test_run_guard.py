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


@requirement("run:guard:refuses")
@pytest.mark.parametrize("replace", ["sed -i s/x/y/", "perl -pi -e s/x/y/"])
def test_a_file_that_a_program_replaces_by_what_it_made_is_not_deleted(desk: RunDesk, replace: str) -> None:
    for number in range(4):
        (desk.root / f"f{number}").write_text("x")

    command = [*desk.words("--guard", "1"), "sh", "-c", f"{replace} f*"]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, start_new_session=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert [(desk.root / f"f{number}").read_text() for number in range(4)] == ["y"] * 4


@requirement("run:guard:refuses")
def test_files_that_get_the_name_of_one_another_are_counted_each_once(desk: RunDesk) -> None:
    for number in range(5):
        (desk.root / f"f{number}").write_text(str(number))

    command = [*desk.words("--guard", "3"), "sh", "-c", "for name in f?; do mv -f $name out || exit 9; done"]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, start_new_session=True, check=False)

    assert (done.returncode, b"was not allowed to delete more (`f3`)" in done.stderr) == (9, True)
    assert sorted(path.name for path in desk.root.glob("f?")) == ["f3", "f4"]
