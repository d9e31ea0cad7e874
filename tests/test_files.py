"""A file is written whole or not at all, and only where a file belongs."""

import os
import stat

import pytest

from equirecourse._files import check_writable, write_beside

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions are those of POSIX")


def refused(path, words, **inputs):
    with pytest.raises(ValueError, match=rf"^'.*' cannot be written: .*{words}.*\.$"):
        check_writable(path, **inputs)


def test_new_file_has_the_usual_permissions(tmp_path):
    write_beside(tmp_path / "a.json", "ä")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "ä"
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@posix
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_old_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(mode)
    write_beside(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "dangling"])
def test_link_stays_and_its_file_is_written(tmp_path, there):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if there:
        (folder / "real.json").write_text("old")
    (tmp_path / "second").symlink_to("elsewhere/real.json")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    check_writable(tmp_path / "first")
    write_beside(tmp_path / "first", "new")
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert (folder / "real.json").read_text() == "new"
    assert list(folder.iterdir()) == [folder / "real.json"]


@posix
def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    refused(tmp_path / "a", "in a circle")
    refused(tmp_path / "a" / "report.html", "there is no folder")


@posix
def test_device_is_refused_and_stays():
    before = os.stat(os.devnull)
    refused(os.devnull, "device or a pipe; name a file")
    with pytest.raises(ValueError, match="device"):
        write_beside(os.devnull, "x")
    after = os.stat(os.devnull)
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)


@posix
def test_link_to_a_device_is_refused(tmp_path):
    (tmp_path / "report.html").symlink_to(os.devnull)
    refused(tmp_path / "report.html", "device or a pipe")


@posix
def test_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "device or a pipe")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="streams have names on Linux")
def test_open_stream_is_refused_even_if_a_file_is_behind_it(tmp_path):
    with (tmp_path / "open.txt").open("w") as file:
        refused(f"/dev/fd/{file.fileno()}", "open stream; name a file")
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{file.fileno()}")
        refused(tmp_path / "link", "open stream; name a file")
    refused("/dev/stdout", "open stream; name a file")


def test_folder_is_refused(tmp_path):
    refused(tmp_path, "it is a folder")
    refused(tmp_path / "missing" / "a.json", "there is no folder")


@pytest.mark.parametrize("name", ["a.json", "."])
def test_what_is_read_only_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "a.json").write_text("old")
    # Root may write everywhere, and tests run as root in a container.
    monkeypatch.setattr(os, "access", lambda path, _: path != (tmp_path / name))
    refused(tmp_path / "a.json", "is read-only")


@posix
@pytest.mark.parametrize("name", ["people.csv", "symbolic", "hard", "folder/../people.csv"])
def test_input_is_no_output_by_any_name(tmp_path, name):
    people = tmp_path / "people.csv"
    people.write_text("income\n1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "symbolic").symlink_to(people)
    (tmp_path / "hard").hardlink_to(people)
    refused(tmp_path / name, "which is read", inputs=[None, people])
    check_writable(tmp_path / "other.csv", inputs=[people])


@pytest.mark.parametrize("given", ["people", "people/*.parquet", "people/**/*.parquet"])
def test_part_of_an_input_is_no_output(tmp_path, given):
    part = tmp_path / "people" / "part.parquet"
    part.parent.mkdir()
    part.write_bytes(b"x")
    refused(part, "which is read", inputs=[tmp_path / given])
    check_writable(tmp_path / "people" / "report.html", inputs=[tmp_path / given])


@posix
def test_two_outputs_are_two_files(tmp_path):
    (tmp_path / "a.html").write_text("x")
    (tmp_path / "b.html").symlink_to("a.html")
    (tmp_path / "c.html").hardlink_to(tmp_path / "a.html")
    for one, other in [("a.html", "a.html"), ("a.html", "b.html"), ("c.html", "a.html"), ("new.html", "./new.html")]:
        with pytest.raises(ValueError, match="is the same file"):
            check_writable(tmp_path / one, None, f"{tmp_path}/{other}")
    check_writable(tmp_path / "a.html", tmp_path / "new.html")


def test_a_break_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_beside(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
