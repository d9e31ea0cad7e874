"""Downloads: checked before they are kept, kept whole or not at all."""

import functools
import hashlib
import http.server
import os
import socket
import threading

import pandas as pd
import pytest

from equirecourse.datasets import _download, clear_data_home, get_data_home
from equirecourse.datasets._download import read_remote
from equirecourse.datasets._registry import REGISTRY, RemoteFile, Source

CONTENT = b"x,y\n1,2\n3,4\n"


def read(path):
    frame = pd.read_csv(path)
    if list(frame.columns) != ["x", "y"]:
        raise ValueError("it has no column 'x'")
    if len(frame) != 2:
        raise ValueError(f"it has {len(frame)} rows, not 2")
    return frame


def remote_at(*sources):
    return RemoteFile(
        title="The toy file",
        shared_path="toy/toy.csv",
        shared_sha256=hashlib.sha256(CONTENT).hexdigest(),
        sources=tuple(
            Source(*source) if isinstance(source, tuple) else Source(source, "toy.csv") for source in sources
        ),
        by_hand="https://example.org/toy",
        by_hand_names=("toy.csv",),
    )


def fetch(remote, *, data_home=None, download_if_missing=True):
    return read_remote(remote, read, data_home=data_home, download_if_missing=download_if_missing)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the content, half of it, something else, or an error, and counts."""

    def __init__(self, requests, *arguments):
        self.requests = requests
        super().__init__(*arguments)

    def do_GET(self):
        self.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = {"/good": CONTENT, "/half": CONTENT[:6], "/other": b"<html>sorry</html>"}[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) if self.path == "/half" else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    requests = []
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, requests))
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)  # looks that often whether to end
    thread.start()
    httpd.requests = requests
    httpd.url = f"http://127.0.0.1:{httpd.server_port}"
    yield httpd
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_download_is_kept_with_its_sha256(server, cache):
    frame = fetch(remote_at(f"{server.url}/good"))
    assert frame["x"].tolist() == [1, 3]
    assert files(cache) == ["toy.csv", "toy.csv.sha256"]
    assert (cache / "toy.csv").read_bytes() == CONTENT
    assert (cache / "toy.csv.sha256").read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  toy.csv\n"


def test_the_second_call_reads_the_cache(server, cache):
    remote = remote_at(f"{server.url}/good")
    fetch(remote)
    fetch(remote)
    fetch(remote, download_if_missing=False)
    assert server.requests == ["/good"]


def test_data_home_is_used_instead_of_the_default(server, cache, tmp_path):
    fetch(remote_at(f"{server.url}/good"), data_home=tmp_path / "mine")
    assert files(tmp_path / "mine") == ["toy.csv", "toy.csv.sha256"]
    assert not cache.exists()


def test_the_next_address_is_tried(server, cache):
    fetch(remote_at(f"{server.url}/missing", f"{server.url}/good"))
    assert server.requests == ["/missing", "/good"]
    assert files(cache) == ["toy.csv", "toy.csv.sha256"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("half", "the download ended after 6 of 12 bytes"),
        ("other", "it has no column 'x'"),
        ("missing", "HTTP Error 404: Not Found"),
    ],
)
def test_a_bad_download_leaves_nothing_behind(path, reason, server, cache):
    with pytest.raises(OSError, match="The toy file could not be downloaded") as caught:
        fetch(remote_at(f"{server.url}/{path}"))
    message = str(caught.value)
    assert reason in message
    for way_out in (
        "get toy.csv by hand from https://example.org/toy",
        "data_home",
        "EQUIRECOURSE_DATA",
        str(cache),
    ):
        assert way_out in message
    assert "\n" not in message
    assert files(cache) == []


def test_a_download_with_another_sha256_than_the_known_one_is_refused(server, cache):
    with pytest.raises(OSError, match="its sha256 is"):
        fetch(remote_at((f"{server.url}/good", "toy.csv", "0" * 64)))
    assert files(cache) == []
    fetch(remote_at((f"{server.url}/good", "toy.csv", hashlib.sha256(CONTENT).hexdigest())))


def test_no_network_is_one_sentence(cache):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/good"
    with pytest.raises(OSError, match="could not be downloaded") as caught:
        fetch(remote_at(url))
    assert "refused" in str(caught.value)
    assert "EQUIRECOURSE_DATA" in str(caught.value)
    assert files(cache) == []


def test_an_interrupted_rename_leaves_nothing_behind(server, cache, monkeypatch):
    def fail(source, destination):
        raise OSError("disk trouble")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"cannot be kept in .*disk trouble"):
        fetch(remote_at(f"{server.url}/good"))
    assert files(cache) == []


def test_a_keyboard_interrupt_leaves_nothing_behind(server, cache, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_download.shutil, "copyfileobj", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(remote_at(f"{server.url}/good"))
    assert files(cache) == []


def test_an_interruption_between_file_and_record_is_healed(server, cache):
    remote = remote_at(f"{server.url}/good")
    fetch(remote)
    (cache / "toy.csv.sha256").unlink()
    fetch(remote)
    assert files(cache) == ["toy.csv", "toy.csv.sha256"]
    assert server.requests == ["/good"]


def test_a_record_of_a_deleted_file_does_not_condemn_the_new_one(server, cache):
    cache.mkdir()
    (cache / "toy.csv.sha256").write_text("0" * 64 + "  toy.csv\n")
    remote = remote_at(f"{server.url}/good")
    fetch(remote)
    fetch(remote)


def test_a_cached_file_that_changed_is_refused(server, cache):
    remote = remote_at(f"{server.url}/good")
    fetch(remote)
    (cache / "toy.csv").write_bytes(CONTENT.replace(b"4", b"5"))  # still fits the facts
    with pytest.raises(OSError, match="has changed since it was first used") as caught:
        fetch(remote)
    assert "delete it to download it again" in str(caught.value)
    (cache / "toy.csv").unlink()
    fetch(remote)


def test_a_cache_that_cannot_be_created_is_one_sentence(server, tmp_path, monkeypatch):
    monkeypatch.delenv("EQUIRECOURSE_DATA", raising=False)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="cannot be created") as caught:
        fetch(remote_at(f"{server.url}/good"), data_home=tmp_path / "file" / "cache")
    assert "EQUIRECOURSE_CACHE" in str(caught.value)


def test_the_shared_folder_comes_first_and_is_checked(server, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIRECOURSE_DATA", str(tmp_path / "shared"))
    remote = remote_at(f"{server.url}/good")
    (tmp_path / "shared" / "toy").mkdir(parents=True)
    (tmp_path / "shared" / "toy" / "toy.csv").write_bytes(CONTENT)
    fetch(remote)
    assert server.requests == []
    assert not cache.exists()
    (tmp_path / "shared" / "toy" / "toy.csv").write_bytes(CONTENT[:-4])
    with pytest.raises(OSError, match="unset EQUIRECOURSE_DATA"):
        fetch(remote)


def test_a_shared_folder_without_the_file_is_passed_over(server, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIRECOURSE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nor in the folder EQUIRECOURSE_DATA="):
        fetch(remote_at(f"{server.url}/good"), download_if_missing=False)
    fetch(remote_at(f"{server.url}/good"))
    assert server.requests == ["/good"]


def test_a_file_address_works_too(cache, tmp_path):
    (tmp_path / "toy.csv").write_bytes(CONTENT)
    assert len(fetch(remote_at((tmp_path / "toy.csv").as_uri()))) == 2


def test_get_data_home_follows_argument_environment_and_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("EQUIRECOURSE_CACHE", raising=False)
    assert get_data_home() == tmp_path / "equirecourse_data"
    assert get_data_home("~/mine") == tmp_path / "mine"
    monkeypatch.setenv("EQUIRECOURSE_CACHE", str(tmp_path / "other"))
    assert get_data_home() == tmp_path / "other"
    assert (tmp_path / "other").is_dir()


def test_clear_data_home_deletes_our_files_only(tmp_path):
    names = [name for remote in REGISTRY for name in remote.names]
    for name in [*names, *(f"{name}.sha256" for name in names), ".partial-abc-toy.csv"]:
        (tmp_path / name).write_text("data")
    (tmp_path / "thesis.tex").write_text("mine")
    clear_data_home(tmp_path)
    assert files(tmp_path) == ["thesis.tex"]
    (tmp_path / "thesis.tex").unlink()
    clear_data_home(tmp_path)
    assert not tmp_path.exists()
    clear_data_home(tmp_path)  # nothing to do is not an error
