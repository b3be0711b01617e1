"""A small stand-in of the Hugging Face Hub: what `huggingface_hub` and `datasets` ask of it, and how it can fail.

Repositories lie in memory. Every file is stated with its size and sha256, as the Hub states large files. The faults are
those that a client meets: a busy server, a cut or changed body, a gate, a repository that is gone.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

Files = dict[str, bytes]
_API = re.compile(r"/api/(datasets|models)/([^/]+/[^/]+)(?:/(revision|tree|paths-info|refs)(?:/(.*))?)?")
_RESOLVE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class Faults:
    """What goes wrong from now on; a number counts down with every file body that is spoilt.

    Attributes:
        busy: So many requests are answered with 503.
        cut: So many bodies end half-way, and the connection with them.
        only: Only requests with this in their address are busy or cut.
        flipped: Paths whose bodies have one changed byte, at every request.
        gated: Repositories that ask for an account: 401 without a token, 403 with one that has no access.
        gone: Repositories that are not there.
        held: No body is sent before it is set.
        etag: The ETag of every file, by method; None where it is the sha256.
        commit: The header X-Repo-Commit of every file; None where it is the commit.
        listed: What a path of the listing is called instead.
        sha: The commit that a repository is said to stand at.
    """

    busy: int = 0
    cut: int = 0
    only: str = ""
    flipped: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    held: threading.Event | None = None
    etag: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    listed: dict[str, str] = field(default_factory=dict)
    sha: str | None = None


class HubStandIn:
    """A server on a free port of this machine. Use it as a context manager."""

    def __init__(self) -> None:
        """Begin without repositories and without faults."""
        self.repositories: dict[tuple[str, str], dict[str, Files]] = {}
        self.faults = Faults()
        self.requests: list[str] = []
        self.lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            stand_in = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Serve in a thread."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def commit(self, repo_id: str, files: Files, kind: str = "datasets") -> str:
        """Make `files` the newest state of a repository; return its commit sha."""
        digest = hashlib.sha1(repo_id.encode(), usedforsecurity=False)
        for path, body in sorted(files.items()):
            digest.update(f"{path} {sha256(body)}\n".encode())
        states = self.repositories.setdefault((kind, repo_id), {})
        states.pop(digest.hexdigest(), None)
        states[digest.hexdigest()] = dict(files)
        return digest.hexdigest()

    def asked(self, part: str) -> list[str]:
        """Return the requests so far whose line holds `part`."""
        return [line for line in self.requests if part in line]

    def take(self, fault: str, address: str) -> bool:
        """Count a fault down; True where it strikes the request for this address."""
        with self.lock:
            if self.faults.only not in address:
                return False
            left = getattr(self.faults, fault)
            setattr(self.faults, fault, max(0, left - 1))
            return bool(left)


def sha256(body: bytes) -> str:
    """Return the sha256 of bytes in hex digits."""
    return hashlib.sha256(body).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_in: HubStandIn

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class names it
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._route()

    def do_GET(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def _route(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.stand_in.requests.append(" ".join([self.command, path, self.headers.get("Range", "")]).strip())
        if self.stand_in.take("busy", path):
            self._error(503, "", "busy")
        elif match := _RESOLVE.fullmatch(path):
            is_dataset, repo_id, revision, file = match.groups()
            self._resolve("datasets" if is_dataset else "models", repo_id, revision, file)
        elif match := _API.fullmatch(path):
            kind, repo_id, verb, rest = match.groups()
            self._api(kind, repo_id, verb or "revision", rest or "main", (parse_qs(url.query), body))
        else:
            self._error(404, "EntryNotFound", "no such page")

    def _state(self, kind: str, repo_id: str, revision: str) -> tuple[str, Files] | None:
        """Return commit and files of a revision; where there are none, answer the request and return None."""
        faults = self.stand_in.faults
        states = self.stand_in.repositories.get((kind, repo_id))
        if states is None or repo_id in faults.gone:
            self._error(404, "RepoNotFound", "Repository not found")
            return None
        if repo_id in faults.gated:
            status = 403 if "Authorization" in self.headers else 401
            self._error(status, "GatedRepo", f"Access to {repo_id} is restricted")
            return None
        commit = next(reversed(states)) if revision == "main" else revision
        if commit not in states:
            self._error(404, "RevisionNotFound", "Revision not found")
            return None
        return commit, states[commit]

    def _api(self, kind: str, repo_id: str, verb: str, rest: str, request: tuple[dict[str, list[str]], bytes]) -> None:
        query, body = request
        revision, _, folder = rest.partition("/")
        found = self._state(kind, repo_id, "main" if verb == "refs" else revision)
        if found is None:
            return
        commit, files = found
        if verb == "refs":
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": commit}
            self._json({"branches": [main], "converts": [], "tags": []})
        elif verb == "tree":
            is_deep = query.get("recursive", ["false"])[0].lower() in ("true", "1")
            listed = self.stand_in.faults.listed
            entries = _entries(files, folder, is_deep=is_deep)
            self._json([{**entry, "path": listed.get(entry["path"], entry["path"])} for entry in entries])
        elif verb == "paths-info":
            wanted = json.loads(body)["paths"] if body[:1] == b"{" else parse_qs(body.decode()).get("paths", [])
            self._json([entry for entry in _entries(files, "", is_deep=True) if entry["path"] in wanted])
        else:
            self._json(_about(repo_id, self.stand_in.faults.sha or commit, files))

    def _resolve(self, kind: str, repo_id: str, revision: str, path: str) -> None:
        found = self._state(kind, repo_id, revision)
        if found is None:
            return
        commit, files = found
        if path not in files:
            self._error(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": self._commit(commit)})
        else:
            self._send_file(commit, path, files[path])

    def _send_file(self, commit: str, path: str, body: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        end = min(int(asked[2]), len(body) - 1) if asked and asked[2] else len(body) - 1
        if asked and start >= len(body):
            self._error(416, "", "nothing there")
            return
        etag = self.stand_in.faults.etag.get(self.command, f'"{sha256(body)}"')
        headers = {"ETag": etag, "X-Repo-Commit": self._commit(commit), "Accept-Ranges": "bytes"}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
        if path in self.stand_in.faults.flipped:
            body = body[:-1] + bytes([body[-1] ^ 1])
        self._begin(206 if asked else 200, "application/octet-stream", end - start + 1, headers)
        if self.command != "HEAD":
            self._send_body(body[start : end + 1])

    def _commit(self, commit: str) -> str:
        return self.stand_in.faults.commit or commit

    def _send_body(self, body: bytes) -> None:
        middle = len(body) // 2
        if held := self.stand_in.faults.held:
            held.wait()
        self.wfile.write(body[:middle])
        self.wfile.flush()
        if self.stand_in.take("cut", self.path):
            self.close_connection = True
            return
        self.wfile.write(body[middle:])

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self._begin(200, "application/json", len(body), {})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"error": message}).encode()
        named = {"X-Error-Code": code, "X-Error-Message": message} if code else {}
        self._begin(status, "application/json", len(body), {**named, **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: int, kind: str, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _entries(files: Files, folder: str, *, is_deep: bool) -> list[dict[str, Any]]:
    """Return what the tree of a repository lists below `folder`: files, and folders where it is not deep."""
    base = f"{folder}/" if folder else ""
    below = {path: body for path, body in files.items() if path.startswith(base)}
    folders = sorted({path[: path.index("/", len(base))] for path in below if "/" in path[len(base) :]})
    shown = {path: body for path, body in below.items() if is_deep or "/" not in path[len(base) :]}
    listed: list[dict[str, Any]] = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders]
    for path, body in sorted(shown.items()):
        lfs = {"oid": sha256(body), "size": len(body), "pointerSize": 134}
        listed.append({"type": "file", "oid": sha256(body)[:40], "size": len(body), "path": path, "lfs": lfs})
    return listed


def _about(repo_id: str, commit: str, files: Files) -> dict[str, Any]:
    return {
        "_id": "0" * 24, "id": repo_id, "sha": commit, "author": repo_id.partition("/")[0], "private": False,
        "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
        "lastModified": "2026-01-19T00:00:00.000Z", "createdAt": "2023-01-01T00:00:00.000Z",
        "siblings": [{"rfilename": path} for path in sorted(files)],
    }  # fmt: skip
